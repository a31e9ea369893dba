import { hostname } from 'node:os';
import type { AuditEventView, AuditOutcome } from '../../core/audit-view.ts';
import { VERSION } from '../../core/version.ts';

/** `unknown`: stored by a later version, which has more kinds. */
const ACTOR_KINDS = [
  'subject',
  'user',
  'key',
  'proxy',
  'local',
  'remote',
  'signal',
  'watch',
  'program',
  'unknown',
] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

export function actorKind(value: unknown): ActorKind {
  return ACTOR_KINDS.find((kind) => kind === value) ?? 'unknown';
}

/** Who has done something. */
export interface Actor {
  /**
   * `subject`: of a token; `user`: of `basicAuth`; `key`: of `apiKey`; `proxy`: a user that a trusted proxy has named; `local`: of this
   * machine; `remote`: anyone who can reach the admin server; `signal`; `watch`: a file has changed; `program`: the one that the
   * gateway runs in.
   */
  readonly kind: ActorKind;
  /** Absent if it is not known. */
  readonly name?: string | undefined;
  /** Of a subject. */
  readonly issuer?: string | undefined;
  /** Of requests, if `config.adminRoles` gives roles; `none` for callers without one. */
  readonly role?: string | undefined;
}

/** Where a request came from. */
export interface Origin {
  /** IP address of the client, or `unix`. */
  readonly address: string;
  /** IP address of the proxy that has named the client, if one has. */
  readonly proxy?: string | undefined;
}

/** A change of the gateway, or an attempt that was refused or has failed. */
export interface AuditEvent {
  /** Unix time in ms. */
  readonly time: number;
  /** Such as `key.create`. */
  readonly action: string;
  readonly outcome: AuditOutcome;
  readonly actor: Actor;
  /** Absent for what was not a request. */
  readonly from?: Origin | undefined;
  /** What was changed, such as the id of a key or the path of a file. */
  readonly target?: string | undefined;
  /** SHA-256 of what it was before, and is now, in hexadecimal digits. Never of a secret. */
  readonly before?: string | undefined;
  readonly after?: string | undefined;
  /** Which gateway has written it (`thisGateway`): several may use one database. Absent for a command, and in events of earlier versions. */
  readonly gateway?: string | undefined;
  /** What else is known, in words. */
  readonly detail?: string | undefined;
}

/** Host name, process id and version, such as `gateway-7d9f/1 0.2.0`. */
export const thisGateway = (pid: number): string => `${hostname()}/${pid} ${VERSION}`;

/** An event as JSON: in the file, in `/api/audit`, and of `agctl audit -o json`. */
export const shownEvent = ({ time, ...event }: AuditEvent): AuditEventView => ({
  time: new Date(time).toISOString(),
  ...event,
});
