import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { elementsOf, membersOf, parseJson } from '../../../core/foreign.ts';

/** Contents of a session id, encrypted, so that another process with the same key can resume the session. */
export interface SessionState {
  /** Random part, which makes ids unique and unguessable. */
  readonly r: string;
  /** Name of the backend. */
  readonly b: string;
  /** Hash of the caller, when there is one. */
  readonly p?: string;
  /** Negotiated protocol revision; absent when the session cannot be resumed. */
  readonly v?: string;
  /** Session ids at the targets, in the order of the targets; absent when a target runs in this process (stdio). */
  readonly s?: readonly (readonly [target: string, session: string | null])[];
  /**
   * The client's `initialize` parameters as JSON text, to initialize new sessions at restarted targets. Absent over
   * `LIMITS.sealedInitializeLength`, because the id is a header of every request.
   */
  readonly i?: string;
  /** The shared store has a record of the session (`shared-sessions.ts`): without it, the session has ended. */
  readonly k?: 1;
}

/**
 * Creates a session id: base64url of nonce (12 bytes), AES-256-GCM ciphertext and tag (16 bytes), and `.` with the number of
 * the worker that has the session, if there are several. `key` has 32 bytes.
 */
export function sealSession(key: Buffer, state: SessionState, worker?: number): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  const text = Buffer.concat([cipher.update(JSON.stringify(state), 'utf8'), cipher.final()]);
  const sealed = Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url');
  return worker === undefined ? sealed : `${sealed}.${worker}`;
}

/** Number of the worker that created the id; undefined if there was only one. Anyone can write a number. */
export function workerOf(id: string): number | undefined {
  const number = WORKER.exec(id)?.[1];
  return number === undefined ? undefined : Number(number);
}

const WORKER = /\.([1-9]\d{0,2})$/;

/** Contents of a session id; undefined if it was not created with this key or is not canonical base64url. */
export function openSession(key: Buffer, id: string): SessionState | undefined {
  const sealed = id.replace(WORKER, '');
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length < 29 || bytes.toString('base64url') !== sealed) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
    decipher.setAuthTag(bytes.subarray(-16));
    return stateIn(
      parseJson(decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8')),
    );
  } catch {
    return undefined;
  }
}

/** Reads the contents, which another build of the gateway may have written. Undefined if a member has another type. */
function stateIn(value: unknown): SessionState | undefined {
  const { r, b, p, v, s, i, k } = membersOf(value);
  const texts = [p, v, i].every((text) => text === undefined || typeof text === 'string');
  const pairs = s === undefined ? undefined : elementsOf(s).filter(isTargetSession);
  if (typeof r !== 'string' || typeof b !== 'string' || !texts) return undefined;
  if (pairs?.length !== (s === undefined ? undefined : elementsOf(s).length)) return undefined;
  return {
    r,
    b,
    ...(typeof p === 'string' && { p }),
    ...(typeof v === 'string' && { v }),
    ...(pairs !== undefined && { s: pairs }),
    ...(typeof i === 'string' && { i }),
    ...(k === 1 && { k }),
  };
}

const isTargetSession = (pair: unknown): pair is readonly [string, string | null] =>
  Array.isArray(pair) && typeof pair[0] === 'string' && (pair[1] === null || typeof pair[1] === 'string');

/**
 * The nonce of a session id, which no other id has: 16 characters, to be remembered instead of several hundred. Copied, because
 * a slice would keep the whole id in memory.
 */
export const nonceOf = (id: string): string => Buffer.from(id.slice(0, 16), 'latin1').toString('latin1');

/**
 * Hash of the caller that a session belongs to; hashed because it is part of the session id. Hashes UTF-16: JSON strings can
 * contain lone surrogates (`\ud83d`), all of which become U+FFFD in UTF-8, so callers whose subjects differ only there
 * would share sessions.
 */
export function ownerOf(principal: string | undefined): string | undefined {
  return principal === undefined
    ? undefined
    : createHash('sha256').update(principal, 'utf16le').digest('base64url').slice(0, 22);
}
