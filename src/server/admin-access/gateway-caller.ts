import { stringIn } from '../../core/foreign.ts';
import type { Actor } from '../audit/event.ts';
import { keyOf, userOf } from '../expressions/caller.ts';
import { CelEvaluationError, CelSyntaxError, compileExpression } from '../expressions/cel/expression.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { Expression } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { jwtClaims, principal, signOutPath } from '../kernel/request/shared-slots.ts';
import { type Caller, namesIn, roleOf } from './caller.ts';
import type { AdminRoles } from './settings.ts';

/** Says who calls the pages on a gateway (`ui`), as its policies have found out, and which role `config.adminRoles` gives. */
export function compileCaller(roles: AdminRoles | undefined): (ctx: RequestContext) => Caller {
  const claim = roles?.claim === undefined ? undefined : compiled(roles.claim);
  const callerOf = (ctx: RequestContext): Caller => {
    const { address, peer } = ctx.client;
    const actor = actorOf(ctx);
    const from = { address, proxy: peer?.address };
    if (roles === undefined) return { actor, from, role: 'editor' };
    if (actor.kind === 'local') return { actor, from, ...localRole(roles) };
    if (claim === undefined)
      return { actor, from, role: undefined, reason: '`config.adminRoles.claim` is not set' };
    const names = namesOf(claim, ctx);
    if (typeof names === 'string') return { actor, from, role: undefined, reason: names };
    const reason = `\`${claim.source}\` is ${shown(names)}`;
    return { actor, from, role: roleOf(names, roles), reason };
  };
  return (ctx) => ({ ...callerOf(ctx), title: titleOf(ctx), signOut: signOutPath.get(ctx) });
}

/** The role of a program of this machine, and why it has no other one. */
export const localRole = ({ local }: AdminRoles): Pick<Caller, 'role' | 'reason'> =>
  local === 'none'
    ? {
        role: undefined,
        reason:
          'it is a program of this machine, and `config.adminRoles.local` is `none`: set it to the role that these programs are to have',
      }
    : { role: local, reason: '`config.adminRoles.local` gives programs of this machine this role' };

/** Names in a message: the first few of them. */
export const shown = (names: readonly string[]): string =>
  names.length === 0
    ? 'an empty list'
    : names
        .slice(0, 5)
        .map((name) => JSON.stringify(name.slice(0, 64)))
        .join(', ') + (names.length > 5 ? ` and ${names.length - 5} more` : '');

/** Undefined for an expression with mistakes, which are reported where the configuration is compiled. */
function compiled(source: string): Expression | undefined {
  try {
    return compileExpression(source, requestScope.roots);
  } catch (error) {
    if (error instanceof CelSyntaxError) return undefined;
    throw error;
  }
}

/** The names of a caller, or why they are not known. */
function namesOf(claim: Expression, ctx: RequestContext): readonly string[] | string {
  try {
    const names = namesIn(claim.evaluate(resolverFor(ctx)));
    return typeof names === 'string' ? `\`${claim.source}\`: ${names}` : names;
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error;
    return `\`${claim.source}\` of \`config.adminRoles.claim\` cannot be evaluated: ${error.message}`;
  }
}

/** Claims (OpenID Connect Core 1.0 §5.1) by which people know each other. */
const TITLES = ['email', 'preferred_username', 'name'];

function titleOf(ctx: RequestContext): string | undefined {
  const claims = jwtClaims.get(ctx) ?? {};
  return TITLES.map((name) => stringIn(claims[name])).find((value) => value !== undefined && value !== '');
}

function actorOf(ctx: RequestContext): Actor {
  const who = principal.get(ctx) ?? '';
  // The policy that has run last has authenticated the caller.
  if (who.startsWith('apiKey:')) return { kind: 'key', name: keyOf(ctx) };
  if (who.startsWith('basicAuth:')) return { kind: 'user', name: userOf(ctx) };
  if (who === '') return { kind: 'local' };
  const { sub, iss } = jwtClaims.get(ctx) ?? {};
  return {
    kind: 'subject',
    name: typeof sub === 'string' ? sub : undefined,
    issuer: typeof iss === 'string' ? iss : undefined,
  };
}
