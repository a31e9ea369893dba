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

/** The hash by which keys are looked up. Keys have 256 random bits, so a fast hash cannot be reversed by guessing. */
export const hashOfKey = (key: string): string => hash('sha256', key);

/** Whether it is neither revoked nor expired; `now`: ms since 1970. */
export const isUsable = ({ revokedAt, expiresAt }: VirtualKey, now: number): boolean =>
  revokedAt === undefined && (expiresAt === undefined || expiresAt > now);
