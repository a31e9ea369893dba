import { z } from 'zod';
import { durationSchema } from '../../core/duration.ts';
import { mapping } from '../../core/schema/mapping.ts';
import { cipherSuitesSchema, keyExchangeGroupsSchema, tlsVersionSchema } from './tls/server-tls.ts';

const bytes = (min: number, max: number) => z.int().min(min).max(max).optional();

/** `frontendPolicies.tls`. */
export const frontendTlsSchema = z.lazy(() =>
  mapping('TLS of all listeners that have `tls`.', {
    handshakeTimeout: durationSchema
      .optional()
      .describe('How long the TLS handshake of a client may take; 15 s by default.'),
    alpn: z
      .array(z.enum(['h2', 'http/1.1']))
      .min(1)
      .optional()
      .describe('Protocols that clients of `HTTPS` may select, the preferred one first; both by default.'),
    minVersion: tlsVersionSchema.optional().describe('Default of `tls.minTLSVersion` of listeners.'),
    maxVersion: tlsVersionSchema.optional().describe('Default of `tls.maxTLSVersion` of listeners.'),
    cipherSuites: cipherSuitesSchema.optional().describe('Default of `tls.cipherSuites` of listeners.'),
    keyExchangeGroups: keyExchangeGroupsSchema
      .optional()
      .describe('Default of `tls.keyExchangeGroups` of listeners.'),
  }),
);

const FIXED = 'Node.js sends 10 probes, one per second: remove it';

/** `frontendPolicies.tcp`. */
export const frontendTcpSchema = z.lazy(() =>
  mapping('TCP connections of clients.', {
    keepalives: mapping('Probes that find connections whose client is gone.', {
      enabled: z.boolean().default(true).describe('Send probes on idle connections.'),
      time: durationSchema.prefault('3m').describe('Idle time before the first probe.'),
    }).meta({ elsewhere: { interval: FIXED, retries: FIXED } }),
  }),
);

/** Keys of `frontendPolicies.http` about connections. */
export const frontendHttpFields = {
  http1MaxHeaders: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe(
      'Maximum number of header lines of an HTTP/1.1 request, 100 by default; more are answered with status 431.',
    ),
  http1IdleTimeout: durationSchema
    .optional()
    .describe('How long an HTTP/1.1 connection may be idle between requests; 65 s by default.'),
  http2WindowSize: bytes(65_535, 2 ** 24).describe(
    'Bytes that a client may send of one HTTP/2 request before they are read; 65535 by default.',
  ),
  http2ConnectionWindowSize: bytes(65_535, 2 ** 24).describe(
    'Bytes that a client may send on an HTTP/2 connection before they are read; 65535 by default.',
  ),
  http2FrameSize: bytes(16_384, 2 ** 24 - 1).describe(
    'Maximum size of an HTTP/2 frame from clients; 16384 by default.',
  ),
  http2MaxHeaderSize: bytes(1024, 65_536).describe(
    'Maximum size of the headers of an HTTP/2 request in bytes, 16384 by default; larger ones are answered with status 431.',
  ),
  http2KeepaliveInterval: durationSchema
    .optional()
    .describe('Interval of pings on HTTP/2 connections; none by default.'),
  http2KeepaliveTimeout: durationSchema
    .optional()
    .describe(
      'How long a client may take to answer a ping before its connection is closed; 20 s by default.',
    ),
  maxConnectionDuration: durationSchema
    .optional()
    .describe(
      'Age at which a connection is closed, after its open requests; it may get older with requests that take longer. No limit by default.',
    ),
};

export const frontendHttpElsewhere = {
  http1HeaderCase: 'names of headers are sent as the backend or a policy writes them: remove it',
};

/** What `frontendPolicies` says of connections. Times are in ms. */
export interface ConnectionSettings {
  readonly keepAlive: { readonly enabled: boolean; readonly time: number } | undefined;
  readonly idle: number | undefined;
  readonly maxDuration: number | undefined;
  readonly streamWindow: number | undefined;
  readonly connectionWindow: number | undefined;
  readonly frameSize: number | undefined;
  readonly headerSize: number | undefined;
  readonly pingInterval: number | undefined;
  readonly pingTimeout: number | undefined;
}

type HttpSettings = { readonly [K in keyof typeof frontendHttpFields]?: number | undefined };

export function connectionSettings(
  http: HttpSettings,
  tcp: z.output<typeof frontendTcpSchema> | undefined,
): ConnectionSettings {
  return {
    keepAlive: tcp?.keepalives,
    idle: http.http1IdleTimeout,
    maxDuration: http.maxConnectionDuration,
    streamWindow: http.http2WindowSize,
    connectionWindow: http.http2ConnectionWindowSize,
    frameSize: http.http2FrameSize,
    headerSize: http.http2MaxHeaderSize,
    pingInterval: http.http2KeepaliveInterval,
    pingTimeout: http.http2KeepaliveTimeout,
  };
}
