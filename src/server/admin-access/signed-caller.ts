import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { isRecord, jsonIn, membersOf, stringIn, textIn } from '../../core/foreign.ts';
import { actorKind } from '../audit/event.ts';
import type { Caller } from './caller.ts';
import { ROLES } from './roles.ts';

/** Header with which a gateway that serves the pages (`ui`) tells its own admin server who calls. */
export const CALLER_HEADER = 'x-agctl-caller';

/** The request that a header belongs to. */
interface SignedRequest {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
}

/** How long after it was made a header is accepted, in ms: it is sent over loopback, at once. */
const AGE = 30_000;
/** Characters of one text. */
const TEXT = 256;

/** `secret`: that of the process, which its workers share. */
export function signCaller(secret: Buffer, request: SignedRequest, caller: Caller, now: number): string {
  const { actor, from, role, title, signOut, reason } = caller;
  const cut = (text: string | undefined): string | undefined => text?.slice(0, TEXT);
  const value = {
    actor: { kind: actor.kind, name: cut(actor.name), issuer: cut(actor.issuer) },
    from: { address: from.address, proxy: from.proxy },
    role,
    title: cut(title),
    // A path that is cut would lead elsewhere.
    signOut: signOut === cut(signOut) ? signOut : undefined,
    reason: cut(reason),
    at: now,
  };
  const payload = Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${payload}.${macOf(secret, request, payload).toString('base64url')}`;
}

/** Undefined if the header was not made for this request, by this process or one of its workers. */
export function readCaller(
  secret: Buffer,
  request: SignedRequest,
  header: string,
  now: number,
): Caller | undefined {
  const [payload = '', mac = '', more] = header.split('.');
  const expected = macOf(secret, request, payload);
  const given = Buffer.from(mac, 'base64url');
  if (more !== undefined || given.length !== expected.length || !timingSafeEqual(given, expected))
    return undefined;
  const value = jsonIn(Buffer.from(payload, 'base64url').toString('utf8'));
  if (!isRecord(value) || typeof value['at'] !== 'number' || Math.abs(now - value['at']) > AGE)
    return undefined;
  const actor = membersOf(value['actor']);
  const from = membersOf(value['from']);
  return {
    actor: {
      kind: actorKind(actor['kind']),
      name: stringIn(actor['name']),
      issuer: stringIn(actor['issuer']),
    },
    from: { address: textIn(from['address']), proxy: stringIn(from['proxy']) },
    role: ROLES.find((role) => role === value['role']),
    title: stringIn(value['title']),
    signOut: stringIn(value['signOut']),
    reason: stringIn(value['reason']),
  };
}

/** For the key of a process: a request has one header. */
const keys = new WeakMap<Buffer, Uint8Array>();

function macOf(secret: Buffer, { method, target }: SignedRequest, payload: string): Buffer {
  const key = keys.get(secret) ?? new Uint8Array(hkdfSync('sha256', secret, '', 'agctl admin caller', 32));
  keys.set(secret, key);
  return createHmac('sha256', key).update(`${method} ${target}\n${payload}`).digest();
}
