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
