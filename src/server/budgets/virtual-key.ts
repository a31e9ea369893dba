import { hash } from 'node:crypto';
import type { KeySettings } from '../../core/virtual-key.ts';

/** A virtual key. The key itself is not kept. */
export interface VirtualKey extends KeySettings {
  readonly id: string;
  /** SHA-256, in hexadecimal digits. */
  readonly hash: string;
  /** The last characters of the key, by which its owner recognizes it. */
  readonly hint: string;
  readonly createdAt: number;
  readonly revokedAt?: number | undefined;
}

/** What the log says of a key that is known but may not be used. */
export interface RefusedKey extends Pick<VirtualKey, 'id' | 'name'> {
  readonly why: 'revoked' | 'expired';
}

/** The hash by which keys are looked up. Keys have 256 random bits, so a fast hash cannot be reversed by guessing. */
export const hashOfKey = (key: string): string => hash('sha256', key);

/** Why it may not be used; undefined if it may. `now`: ms since 1970. */
export function whyUnusable(
  { revokedAt, expiresAt }: VirtualKey,
  now: number,
): 'revoked' | 'expired' | undefined {
  if (revokedAt !== undefined) return 'revoked';
  return expiresAt !== undefined && expiresAt <= now ? 'expired' : undefined;
}

/** Whether it is neither revoked nor expired. */
export const isUsable = (key: VirtualKey, now: number): boolean => whyUnusable(key, now) === undefined;
