import { createHash, timingSafeEqual } from 'node:crypto';

// "Unix crypt using SHA-256 and SHA-512" (U. Drepper, version 0.6), whose steps the comments name.

interface Variant {
  readonly algorithm: 'sha256' | 'sha512';
  /** Bytes of the digest in the order of the text, three for four characters; the last group is shorter. */
  readonly order: readonly (readonly number[])[];
}

/** Every group has the next index of each third of the digest; the thirds change places from group to group. */
function orderOf(size: number, step: 1 | 2): number[][] {
  const third = Math.floor(size / 3);
  return Array.from({ length: third }, (_, group) => {
    const at = [group, group + third, group + 2 * third];
    const turn = (group * step) % 3;
    return [...at.slice(turn), ...at.slice(0, turn)];
  });
}

const VARIANTS: Readonly<Record<string, Variant>> = {
  '5': { algorithm: 'sha256', order: [...orderOf(32, 2), [31, 30]] },
  '6': { algorithm: 'sha512', order: [...orderOf(64, 1), [63]] },
};

const DEFAULT_ROUNDS = 5000;
const FEWEST_ROUNDS = 1000;
const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = /^\$([56])\$(?:rounds=(\d+)\$)?([^$:]{0,16})\$([./0-9A-Za-z]+)$/;

/** Whether it is the password of a hash `$5$…` or `$6$…`. Takes the time of its rounds: 5000 by default. */
export function isShaCryptPassword(password: string, hash: string): boolean {
  const [, kind = '', rounds, salt = '', digest = ''] = FORM.exec(hash) ?? [];
  const variant = VARIANTS[kind];
  if (variant === undefined) return false;
  const wanted = rounds === undefined ? DEFAULT_ROUNDS : Math.max(FEWEST_ROUNDS, Number(rounds));
  const computed = shaCrypt(variant, Buffer.from(password), Buffer.from(salt), wanted);
  return computed.length === digest.length && timingSafeEqual(Buffer.from(computed), Buffer.from(digest));
}

function shaCrypt({ algorithm, order }: Variant, key: Buffer, salt: Buffer, rounds: number): string {
  const digest = (...parts: readonly Uint8Array[]): Buffer => {
    const hash = createHash(algorithm);
    for (const part of parts) hash.update(part);
    return hash.digest();
  };
  // Steps 4 to 8.
  const b = digest(key, salt, key);
  // Steps 1 to 3 and 9 to 12: one part for each bit of the length, the lowest first.
  const bits = key.length === 0 ? [] : [...key.length.toString(2)].reverse();
  let a = digest(key, salt, repeated(b, key.length), ...bits.map((bit) => (bit === '1' ? b : key)));
  // Steps 13 to 16.
  const p = repeated(digest(...Array.from({ length: key.length }, () => key)), key.length);
  // Steps 17 to 20.
  const s = repeated(digest(...Array.from({ length: 16 + a.readUInt8() }, () => salt)), salt.length);
  // Step 21.
  for (let round = 0; round < rounds; round += 1) {
    const isOdd = round % 2 === 1;
    const parts = [isOdd ? p : a];
    if (round % 3 !== 0) parts.push(s);
    if (round % 7 !== 0) parts.push(p);
    parts.push(isOdd ? a : p);
    a = digest(...parts);
  }
  return order.map((group) => characters(group.map((index) => a.readUInt8(index)))).join('');
}

/** The bytes again and again, up to a length. */
function repeated(bytes: Buffer, length: number): Buffer {
  return Buffer.alloc(length, bytes);
}

/** Step 22: six bits for each character, the lowest first; the first byte is the highest. */
function characters(bytes: readonly number[]): string {
  let value = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  return Array.from({ length: Math.ceil((bytes.length * 8) / 6) }, () => {
    const character = ALPHABET.charAt(value % 64);
    value = Math.floor(value / 64);
    return character;
  }).join('');
}
