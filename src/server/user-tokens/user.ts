import { membersOf, stringIn } from '../../core/foreign.ts';
import { variableOf } from '../expressions/variable.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { jwtClaims, principal } from '../kernel/request/shared-slots.ts';
import { hashOf } from './seal.ts';

/** A user of the gateway, whom a policy has authenticated. */
export interface User {
  /** Hash of the principal. */
  readonly id: string;
  /** For people: a name, an address, or the beginning of the hash of a key. */
  readonly who: string;
}

const LONGEST_NAME = 200;

/**
 * The user of a request; undefined without authentication, and for a token without `sub`: the next one would be another user, who has
 * not signed in anywhere.
 */
export function userOf(ctx: RequestContext): User | undefined {
  const who = principal.get(ctx);
  return who === undefined || hasTokenWithoutSubject(ctx)
    ? undefined
    : { id: hashOf(who), who: nameOf(ctx, who).slice(0, LONGEST_NAME).toWellFormed() };
}

export function hasTokenWithoutSubject(ctx: RequestContext): boolean {
  const claims = jwtClaims.get(ctx);
  const isKnownByToken = principal.get(ctx)?.startsWith('jwt:') === true;
  return isKnownByToken && claims !== undefined && typeof claims['sub'] !== 'string';
}

function nameOf(ctx: RequestContext, who: string): string {
  const [, kind, rest = ''] = /^(\w+):(.*)$/s.exec(who) ?? [];
  if (kind === 'basicAuth') return rest;
  if (kind === 'apiKey')
    return stringIn(membersOf(variableOf('apiKey', ctx))['name']) ?? `key ${rest.slice(0, 8)}`;
  const { email, preferred_username: name, sub } = jwtClaims.get(ctx) ?? {};
  return stringIn(email) ?? stringIn(name) ?? stringIn(sub) ?? rest;
}
