import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

// Certificates for `localhost`, and no address, until 2120: `good` and `expired` come from an authority of our own, whose key
// was thrown away.

export type Certificate = 'good' | 'expired' | 'self-signed';

const path = (file: string): string => fileURLToPath(new URL(`certificates/${file}`, import.meta.url));

/** For `NODE_EXTRA_CA_CERTS` of a process that is to trust `good`. */
export const AUTHORITY = path('authority.crt');

/** Options of a TLS server. */
export function certificateOf(name: Certificate): { cert: Buffer; key: Buffer } {
  return { cert: readFileSync(path(`${name}.crt`)), key: readFileSync(path('server.key')) };
}

/**
 * Path of a file in the folder of certificates. `other` is for `other.example`, `client` for clients, from an authority;
 * `issuing` is an authority with its key, of two kinds.
 */
export type CertificateFile =
  | 'good.crt'
  | 'server.key'
  | 'expired.crt'
  | 'other.crt'
  | 'other.key'
  | 'client.crt'
  | 'client.key'
  | 'client-authority.crt'
  | 'issuing.crt'
  | 'issuing.key'
  | 'issuing-rsa.crt'
  | 'issuing-rsa.key';

export const certificatePath = (file: CertificateFile): string => path(file);

/** `tls` of a gateway with the certificate for `localhost`. */
export const GOOD_TLS = { cert: path('good.crt'), key: path('server.key') };

/** Options of a client that trusts the gateway's certificate. */
export const TRUSTING = { ca: readFileSync(AUTHORITY), servername: 'localhost' };
