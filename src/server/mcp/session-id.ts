import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** What a session id carries, encrypted, so that another process with the same key can continue the session. */
export interface SessionState {
  /** Random part: makes every id unique and unguessable. */
  readonly r: string;
  readonly b: string;
  /** Hash of the caller, when there is one. */
  readonly p?: string;
  readonly v?: string;
  /** Sessions at the targets, in the order of the targets; absent when one lives in this process. */
  readonly s?: readonly (readonly [target: string, session: string | null])[];
}

/** A session id: base64url of nonce, AES-256-GCM ciphertext and tag. */
export function sealSession(key: Buffer, state: SessionState): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(state), 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url');
}

/** What an id carries; undefined for one that was not made with this key, or has another spelling. */
export function openSession(key: Buffer, id: string): SessionState | undefined {
  const bytes = Buffer.from(id, 'base64url');
  if (bytes.length < 29 || bytes.toString('base64url') !== id) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
    decipher.setAuthTag(bytes.subarray(-16));
    return JSON.parse(
      decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8'),
    ) as SessionState;
  } catch {
    return undefined;
  }
}
