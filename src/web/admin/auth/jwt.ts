import { isRecord, parseJson } from '../../../core/foreign.ts';

/** The unverified content of a token: only the gateway verifies signatures. */
export interface Jwt {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Parses a JWT in compact form (RFC 7519); undefined if the text is not one. */
export function readJwt(text: string): Jwt | undefined {
  const [first, second, signature, ...more] = text.split('.');
  if (signature === undefined || more.length > 0) return undefined;
  const header = part(first ?? '');
  const claims = part(second ?? '');
  return header === undefined || claims === undefined ? undefined : { header, claims };
}

function part(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (unit) => unit.charCodeAt(0));
    const value = parseJson(new TextDecoder().decode(bytes));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Remarkable properties of a token at a time in ms since 1970. */
export function remarksOn({ header, claims }: Jwt, now: number): string[] {
  const remarks: string[] = [];
  const { exp, nbf } = claims;
  if (typeof exp === 'number' && exp * 1000 < now)
    remarks.push(`it expired ${ago(now - exp * 1000)} ago (exp)`);
  if (typeof exp !== 'number') remarks.push('it never expires: it has no exp');
  if (typeof nbf === 'number' && nbf * 1000 > now)
    remarks.push(`it becomes valid in ${ago(nbf * 1000 - now)} (nbf)`);
  if (header['alg'] === 'none') remarks.push('it is not signed (alg none)');
  return remarks;
}

function ago(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}
