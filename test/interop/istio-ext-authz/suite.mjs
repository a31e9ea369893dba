// The external authorizer of Istio's samples: Envoy's gRPC protocol and plain HTTP.
import { goPrograms } from '../go-program.mjs';

export const { missing, start } = goPrograms(import.meta.dirname, {
  EXT_AUTHZ: 'istio.io/istio/samples/extauthz/cmd/extauthz',
});
