import { membersOf } from '../../core/foreign.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { jwtClaims, principal, refusedKey } from '../kernel/request/shared-slots.ts';
import { variableOf } from './variable.ts';

// Who sent a request, by name: as policies found out when they authenticated it. Nothing here is a credential.

/** The name of the API key; for a key without a name, eight digits of its hash, which tell keys apart. */
export function keyOf(ctx: RequestContext): string | undefined {
  const key = metadataOf(ctx);
  return key && nameOfKey(key['name'], principal.get(ctx)?.slice('apiKey:'.length) ?? '');
}

/** For log and record: also the name of a key that was refused because it is not valid any more. */
export const shownKeyOf = (ctx: RequestContext): string | undefined => keyOf(ctx) ?? refusedKey.get(ctx);

/** `hashed`: the hash of the key. */
export const nameOfKey = (name: unknown, hashed: string): string =>
  nameIn(name) ?? `key ${hashed.slice(0, 8)}`;

/** The subject of the token, or the user of the API key or of basic authentication. */
export function userOf(ctx: RequestContext): string | undefined {
  const who = principal.get(ctx);
  return (
    nameIn(jwtClaims.get(ctx)?.['sub']) ??
    nameIn(metadataOf(ctx)?.['user']) ??
    (who?.startsWith('basicAuth:') ? who.slice('basicAuth:'.length) : undefined)
  );
}

/** The group or team of the API key. */
export function groupOf(ctx: RequestContext): string | undefined {
  const key = metadataOf(ctx);
  return nameIn(key?.['group']) ?? nameIn(key?.['team']);
}

/** What the configuration, or the key itself, says of the API key. */
function metadataOf(ctx: RequestContext): Readonly<Record<string, unknown>> | undefined {
  return principal.get(ctx)?.startsWith('apiKey:') ? membersOf(variableOf('apiKey', ctx)) : undefined;
}

/** A value as a name; undefined if it is empty, or neither a text nor a number. */
export function nameIn(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  return typeof value === 'number' || typeof value === 'bigint' ? String(value) : undefined;
}
