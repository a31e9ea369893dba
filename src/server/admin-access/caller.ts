import type { Actor, Origin } from '../audit/event.ts';
import { ROLES, type Role } from './roles.ts';
import type { AdminRoles } from './settings.ts';

/** Who calls the admin server, and what they may do. */
export interface Caller {
  readonly actor: Actor;
  readonly from: Origin;
  /** Undefined: nothing. */
  readonly role: Role | undefined;
  /** The connection is that of the caller's own program. */
  readonly isDirect?: boolean;
  /** What people call the caller, if a token says it: the subject may be a number. */
  readonly title?: string | undefined;
  /** Where the browser of the caller ends its session: a path of the gateway that serves the pages. */
  readonly signOut?: string | undefined;
  /** Why the caller has no higher role. */
  readonly reason?: string | undefined;
}

/** The highest role of one of the names. */
export function roleOf(names: readonly string[], roles: AdminRoles): Role | undefined {
  return ROLES.findLast((role) => roles[role].some((name) => names.includes(name)));
}

/**
 * The names in the value of a claim: a string is one name, as identity providers write lists of one. Anything else is an error in words: no
 * part of it counts.
 */
export function namesIn(value: unknown): readonly string[] | string {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value;
  const found =
    value === undefined || value === null
      ? 'it is absent'
      : Array.isArray(value)
        ? 'it is a list with other values'
        : `it is a ${typeof value === 'object' ? 'map' : typeof value}`;
  return `expected a string or a list of strings, but ${found}`;
}

/** A refusal in words. */
export function needsRole(what: string, needed: Role, { actor, role, reason }: Caller): string {
  const who = actor.name === undefined ? 'you have' : `${JSON.stringify(actor.name.slice(0, 64))} has`;
  const has = role === undefined ? 'no role' : `the role \`${role}\``;
  return `${what} needs the role \`${needed}\`, and ${who} ${has}${reason === undefined ? '' : `: ${reason}`}`;
}
