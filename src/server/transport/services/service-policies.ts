import { z } from 'zod';
import { durationSchema } from '../../../core/duration.ts';
import { mapping } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { backendTlsSchema, compileBackendTls, type TlsOptions } from '../tls/backend-tls.ts';
import type { UpstreamAddress } from '../upstream/upstream.ts';
import { backendAuthSchema, readCredential } from './backend-credential.ts';

/** `policies` of a service that a policy calls. */
export const servicePoliciesSchema = z.lazy(() =>
  mapping('How the gateway connects to the service.', {
    backendTLS: backendTlsSchema.optional(),
    backendAuth: backendAuthSchema.optional().describe('Credential for the service.'),
    http: mapping('Calls of the service.', {
      requestTimeout: durationSchema.optional().describe('Maximum time of a call.'),
    }).optional(),
    tcp: mapping('Connections to the service.', {
      connectTimeout: durationSchema.optional().describe('Maximum time to open a connection.'),
      keepalives: mapping('Keepalive probes, with the settings of the operating system.', {}).optional(),
    }).optional(),
  }),
);

/** How a service is reached. Times are in ms. */
export interface ServiceConnection {
  /** Set: connections use TLS. */
  readonly tls?: TlsOptions;
  /** `Authorization` header of every call. */
  readonly authorization?: string;
  readonly requestTimeout?: number;
  readonly connectTimeout?: number;
}

/** Compiles the policies of a service, and reads the files that they name. */
export function compileServicePolicies(
  { backendTLS, backendAuth, http, tcp }: z.output<typeof servicePoliciesSchema>,
  context: CompileContext,
): ServiceConnection {
  const key = backendAuth && readCredential(backendAuth.key, context.at('backendAuth', 'key'));
  return {
    ...(backendTLS !== undefined && { tls: compileBackendTls(backendTLS, context.at('backendTLS')) }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(http?.requestTimeout !== undefined && { requestTimeout: http.requestTimeout }),
    ...(tcp?.connectTimeout !== undefined && { connectTimeout: tcp.connectTimeout }),
  };
}

/** The address with `https:` if the connection uses TLS, although the configuration names no scheme. */
export function securedAddress(address: UpstreamAddress, { tls }: ServiceConnection): UpstreamAddress {
  const { protocol, hostname, port } = new URL(address.origin);
  if (tls === undefined || protocol === 'https:') return address;
  return { ...address, origin: `https://${hostname}:${port || '80'}` };
}
