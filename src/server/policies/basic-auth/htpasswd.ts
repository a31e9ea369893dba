import { createHash, timingSafeEqual } from 'node:crypto';
import { LIMITS } from '../../../core/limits.ts';
import { isShaCryptPassword } from './sha-crypt.ts';

/** A format of password hashes (Apache HTTP Server, "Password Formats"). */
interface Format {
  readonly pattern: RegExp;
  matches(password: string, hash: string): boolean | Promise<boolean>;
}

const FORMATS: readonly Format[] = [
  {
    pattern: /^\$2[aby]\$(?:0[4-9]|1[0-4])\$[./0-9A-Za-z]{53}$/,
    matches: async (password, hash) => (await import('bcryptjs')).compare(password, hash),
  },
  {
    pattern: /^\$(?:apr)?1\$[^$:]{0,8}\$[./0-9A-Za-z]{22}$/,
    // The package takes one byte of each character: the password is given as its UTF-8 bytes.
    matches: async (password, hash) => {
      const { default: md5 } = await import('apache-md5');
      return equal(md5(Buffer.from(password).toString('latin1'), hash), hash);
    },
  },
  {
    pattern: /^\{SHA\}[A-Za-z0-9+/]{27}=$/,
    matches: (password, hash) => equal(`{SHA}${createHash('sha1').update(password).digest('base64')}`, hash),
  },
  {
    pattern:
      /^\$(?:5\$(?:rounds=\d{4,5}\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{43}|6\$(?:rounds=\d{4,5}\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{86})$/,
    matches: isShaCryptPassword,
  },
];

/** The formats that are accepted, for messages. */
export const FORMAT_NAMES =
  'bcrypt (`htpasswd -B`, cost up to 14), apr1 (`htpasswd -m`), SHA-256 and SHA-512 crypt (`htpasswd -2`, `-5`, up to 99999 rounds), {SHA} (`htpasswd -s`)';

/** A user database in the format of Apache's htpasswd. */
export interface Users {
  readonly hashes: ReadonlyMap<string, string>;
  /** Lines that have no user, or a hash of another format: their numbers, from 1. */
  readonly unusable: readonly number[];
}

/** Reads a user database. Empty lines and comments are skipped; of several lines for one user, the first counts. */
export function parseUsers(text: string): Users {
  const hashes = new Map<string, string>();
  const unusable: number[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const entry = line.trim();
    if (entry === '' || entry.startsWith('#')) continue;
    const colon = entry.indexOf(':');
    // A third field is a comment.
    const hash = entry.slice(colon + 1).split(':', 1)[0] ?? '';
    if (colon < 1 || formatOf(hash) === undefined) unusable.push(index + 1);
    else if (!hashes.has(entry.slice(0, colon))) hashes.set(entry.slice(0, colon), hash);
  }
  return { hashes, unusable };
}

const formatOf = (hash: string): Format | undefined => FORMATS.find(({ pattern }) => pattern.test(hash));

/**
 * Whether it is the password of this hash. Longer passwords than `LIMITS.passwordLength` never are: bcrypt reads 72 bytes,
 * and the work of the others grows with the length.
 */
export async function isPassword(password: string, hash: string): Promise<boolean> {
  if (password.length > LIMITS.passwordLength) return false;
  return (await formatOf(hash)?.matches(password, hash)) ?? false;
}

function equal(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
