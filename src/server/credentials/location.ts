import { z } from 'zod';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { headersView } from '../expressions/request-variables.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext, SecretNames } from '../kernel/compile-context.ts';
import { isOwnCookie } from '../kernel/request/own-cookies.ts';
import { warnOfRemovedHeader } from '../kernel/request/removed-header.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { withoutParameters } from '../kernel/request/request-target.ts';
import { credentialParameters } from '../kernel/request/shared-slots.ts';

/** A query parameter that carries a credential. */
export const parameterSchema = mapping('A query parameter.', {
  name: nonEmpty.describe('Name of the parameter.'),
}).optional();

/** Reports an object that has not exactly one of these members. */
export const exactlyOneOf =
  (...names: readonly string[]) =>
  (value: object, context: z.RefinementCtx): void => {
    if (Object.values(value).filter((part) => part !== undefined).length === 1) return;
    context.addIssue({
      code: 'custom',
      message: `expected exactly one of ${names.map((name) => `\`${name}\``).join(', ')}`,
      params: { code: 'AGW0105' },
    });
  };

/** Schema of the location of a credential in a request, for all policies that read one. */
export const locationSchema = z.lazy(() =>
  z
    .strictObject({
      header: mapping('A header.', {
        name: nonEmpty.default('authorization').describe('Header that contains the credential.'),
        prefix: z
          .string()
          .default('')
          .describe('Text before the credential, such as `Bearer `. Case-insensitive.'),
      }).optional(),
      queryParameter: parameterSchema,
      cookie: mapping('A cookie.', {
        name: nonEmpty
          .refine((name) => !isOwnCookie(name), {
            error:
              'expected a name that does not begin with `agctl_`, as the cookies of the gateway itself do',
          })
          .describe('Name of the cookie.'),
      }).optional(),
      expression: nonEmpty.optional().describe('CEL expression for the credential.'),
    })
    .superRefine(exactlyOneOf('header', 'queryParameter', 'cookie', 'expression')),
);

/** Reads a credential from requests and removes it. */
export interface CredentialLocation {
  /** The credential; undefined if there is none. */
  read(ctx: RequestContext): string | undefined;
  /**
   * Removes the credential from the request, so that the backend does not receive it: what is at this location, and every other header,
   * cookie and query parameter that has it. What an expression has decoded stays.
   */
  remove(ctx: RequestContext, credential: string): void;
  /** Name of its header, if it is in one. */
  readonly header?: string;
  /** Scheme of the challenge, which every 401 needs (RFC 9110 §15.5.2): `Bearer` or `ApiKey`. */
  readonly scheme: string;
}

/** Compiles a location. The default is a bearer token in the Authorization header (RFC 6750 §2.1). */
export function credentialLocation(
  config: z.output<typeof locationSchema> | undefined,
  context: CompileContext,
): CredentialLocation {
  const { header, queryParameter, cookie, expression } = config ?? {
    header: { name: 'authorization', prefix: 'Bearer ' },
  };
  addSecretNames(config, context.settings.secretNames);
  if (queryParameter !== undefined) return inQuery(queryParameter.name);
  if (cookie !== undefined) return inCookie(cookie.name);
  if (expression !== undefined) {
    const compiled = context.at('expression').cel(expression, requestScope);
    return {
      scheme: 'ApiKey',
      read(ctx) {
        const lookup = resolverFor(ctx);
        // Not `lookup` itself: it would record the result in a trace, which is the credential.
        const value = tryEvaluate(compiled, (root) => lookup(root));
        return typeof value === 'string' && value !== '' ? value : undefined;
      },
      remove: removeCopies,
    };
  }
  if (header !== undefined) warnOfRemovedHeader(header.name, context.at('header', 'name'));
  return inHeader(header?.name ?? 'authorization', header?.prefix ?? '');
}

/**
 * A bearer token in the Authorization header or, if there is none, a key in a header of the clients of the route's API
 * (`ClientApi.keyHeaders`).
 */
export function usualLocation(): CredentialLocation {
  const bearer = inHeader('authorization', 'Bearer ');
  const headerOf = (ctx: RequestContext): string | undefined =>
    bearer.read(ctx) === undefined ? ctx.api?.keyHeaders?.find((name) => ctx.headers.has(name)) : undefined;
  return {
    scheme: bearer.scheme,
    read(ctx) {
      const name = headerOf(ctx);
      return name === undefined ? bearer.read(ctx) : ctx.headers.get(name);
    },
    remove(ctx, credential) {
      ctx.headers.delete(headerOf(ctx) ?? 'authorization');
      removeCopies(ctx, credential);
    },
  };
}

/** Registers headers and parameters whose values traces must omit. Finds header names in expressions by their syntax. */
function addSecretNames(config: z.output<typeof locationSchema> | undefined, names: SecretNames): void {
  const { header, queryParameter, expression = '' } = config ?? {};
  if (header !== undefined) names.headers.add(header.name.toLowerCase());
  if (queryParameter !== undefined) names.parameters.add(queryParameter.name.toLowerCase());
  for (const [, name = ''] of expression.matchAll(/headers\s*(?:\[\s*["']|\.)([\w-]+)/g))
    names.headers.add(name.toLowerCase());
}

function inHeader(name: string, prefix: string): CredentialLocation {
  return {
    scheme: prefix.trim().toLowerCase() === 'bearer' ? 'Bearer' : 'ApiKey',
    header: name,
    read(ctx) {
      const value = ctx.headers.get(name);
      if (value === undefined || value.slice(0, prefix.length).toLowerCase() !== prefix.toLowerCase())
        return undefined;
      const credential = value.slice(prefix.length).trim();
      return credential === '' ? undefined : credential;
    },
    remove(ctx, credential) {
      ctx.headers.delete(name);
      removeCopies(ctx, credential);
    },
  };
}

function inQuery(name: string): CredentialLocation {
  const names = new Set([name]);
  return {
    scheme: 'ApiKey',
    read(ctx) {
      credentialParameters.set(ctx, names);
      return new URLSearchParams(ctx.query).get(name) || undefined;
    },
    remove(ctx, credential) {
      ctx.query = withoutParameters(ctx.query, names);
      removeCopies(ctx, credential);
    },
  };
}

/** The cookies of a request, `name=value` each, without those of this name. */
export function cookiesWithout({ headers }: Pick<RequestContext, 'headers'>, name: string): string[] {
  return headers
    .all('cookie')
    .flatMap((value) => value.split(';').map((pair) => pair.trim()))
    .filter((pair) => pair !== '' && pair.split('=')[0]?.trim() !== name);
}

function inCookie(name: string): CredentialLocation {
  return {
    scheme: 'ApiKey',
    read: (ctx) => headersView(ctx).cookie(name) || undefined,
    remove(ctx, credential) {
      const kept = cookiesWithout(ctx, name);
      ctx.headers.delete('cookie');
      if (kept.length > 0) ctx.headers.set('cookie', kept.join('; '));
      removeCopies(ctx, credential);
    },
  };
}

/** Shorter ones would be found in other values by chance. */
const SHORTEST_COPY = 6;
/** Headers that say what the message is: the password `application` must not take its content type away. */
const OF_MESSAGE = /^(?:host|user-agent|transfer-encoding|accept(?:-.*)?|content-.*|mcp-.*)$/i;

/**
 * Removes a credential where it is besides its location. Clients send it at several places at once, since gateways differ in where they
 * look: `x-litellm-api-key` and `Authorization`, `x-api-key` and `Authorization`.
 */
function removeCopies(ctx: RequestContext, credential: string): void {
  if (credential.length < SHORTEST_COPY) return;
  const { raw } = ctx.headers;
  for (let at = raw.length - 2; at >= 0; at -= 2) {
    const value = raw[at + 1] ?? '';
    const name = raw[at] ?? '';
    if (!value.includes(credential) || OF_MESSAGE.test(name)) continue;
    const isCookie = name.toLowerCase() === 'cookie';
    const kept = value.split(isCookie ? ';' : '\n').filter((part) => !hasWhole(part, credential));
    if (kept.length === 0) raw.splice(at, 2);
    else raw[at + 1] = kept.join(';').trimStart();
  }
  if (ctx.query === '') return;
  const parameters = [...new URLSearchParams(ctx.query)].filter(([, value]) => value === credential);
  if (parameters.length > 0)
    ctx.query = withoutParameters(ctx.query, new Set(parameters.map(([name]) => name)));
}

/** Whether a value has the credential, and not as a part of a longer word. */
function hasWhole(value: string, credential: string): boolean {
  const at = value.indexOf(credential);
  if (at === -1) return false;
  const isPartOf = (letter: string | undefined): boolean => letter !== undefined && /[\w.~+/-]/.test(letter);
  return !isPartOf(value[at - 1]) && !isPartOf(value[at + credential.length]);
}
