import { Agent } from 'node:http';
import { authorizationService } from '../../src/server/policies/envoy/authorization-service.ts';
import { gateway, type TestGatewayOptions } from './gateway.ts';
import { type GrpcAnswer, grpcService } from './grpc-service.ts';
import { type SendOptions, send as sendWith } from './send.ts';
import { type Answer, type HttpUpstream, httpUpstream } from './upstream.ts';

/** An authorization service with Envoy's protocol. */
export const grpc = (answer: GrpcAnswer) => grpcService(authorizationService, 'Check', answer);
/** The service gets the port of the client. */
export const PORT = { addRequestHeaders: { 'x-port': 'string(source.port)' } };

/** A service that is asked about connections over HTTP. */
export const overHttp = (host: string, http: object = PORT, more: object = {}): object => ({
  networkExtAuthz: { host, protocol: { http }, ...more },
});

/** A gateway that answers `ok`. */
export const answering = (frontendPolicies: object, tls?: object, options: TestGatewayOptions = {}) =>
  gateway(
    JSON.stringify({
      frontendPolicies,
      gateways: { default: { port: 0, tls, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
    }),
    { level: 'debug', ...options },
  );

/** A request on a connection of its own. */
export const send = (url: string, options: SendOptions = {}) =>
  sendWith(url, { agent: new Agent(), ...options });

/** A service whose answers to calls are held back until the test gives them. */
export async function holding(): Promise<HttpUpstream & { readonly held: Parameters<Answer>[1][] }> {
  const held: Parameters<Answer>[1][] = [];
  const service = await httpUpstream((_, response) => held.push(response));
  return Object.assign(service, { held });
}
