import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken, isSame } from './access-checks.ts';
import { isNamespace, NAMESPACE_FORM, NAMESPACE_HEADER } from './namespace.ts';
import type { NamespaceKeys } from './namespace-keys.ts';

/** Who may call, and which namespace a call belongs to. */
export interface CallerRules {
  /** The main key, that of the trusted gateway. Its callers choose the namespace with a header. */
  readonly key: string | undefined;
  /** Keys that belong to one namespace each. With them, every call needs a key. */
  readonly namespaceKeys?: NamespaceKeys | undefined;
  /** Refuses calls that name no namespace, instead of using `default`. */
  readonly requiresNamespace?: boolean;
}

export interface Caller {
  /** The namespace that the key or the header names, if any. */
  readonly namespace: string | undefined;
  /** Whether it may manage all namespaces. */
  readonly isTrusted: boolean;
}

export interface Refusal {
  readonly status: 400 | 401 | 403;
  readonly message: string;
}

/** For a caller that names no namespace where the rules require one. */
export const NAMESPACE_REQUIRED: Refusal = {
  status: 400,
  message: `no namespace: send a namespace's key, or the header \`${NAMESPACE_HEADER}\`; commands have the option \`--namespace\` (MEMORY_NAMESPACES=required)`,
};

/** Identifies a caller by its headers. No message reveals a key. */
export function callerOf(headers: IncomingHttpHeaders, rules: CallerRules): Caller | Refusal {
  const { key, namespaceKeys } = rules;
  const token = bearerToken(headers.authorization);
  const own = token === undefined ? undefined : namespaceKeys?.namespaceOf(token);
  if (own === undefined && (key !== undefined || namespaceKeys !== undefined)) {
    if (token === undefined) return { status: 401, message: 'a bearer token is required' };
    if (key === undefined || !isSame(token, key))
      return { status: 401, message: 'the bearer token is wrong' };
  }
  const named = headers[NAMESPACE_HEADER];
  if (named !== undefined && !isNamespace(named))
    return { status: 400, message: `header \`${NAMESPACE_HEADER}\`: expected ${NAMESPACE_FORM}` };
  if (own === undefined) return { namespace: named, isTrusted: true };
  if (named === undefined || named === own) return { namespace: own, isTrusted: false };
  return {
    status: 403,
    message: `the key belongs to another namespace than the header \`${NAMESPACE_HEADER}\` names: omit the header`,
  };
}
