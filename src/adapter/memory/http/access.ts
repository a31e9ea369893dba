import type { IncomingHttpHeaders } from 'node:http';
import { hostProblem } from '../../access-checks.ts';
import { type Caller, type CallerRules, callerOf, NAMESPACE_REQUIRED, type Refusal } from '../../caller.ts';
import { DEFAULT_NAMESPACE } from '../../namespace.ts';
import { MemoryError } from './memory-error.ts';

export interface Access extends CallerRules {
  /** Host names that local connections may use, in addition to loopback names. */
  readonly allowedHosts: ReadonlySet<string>;
}

interface Connection {
  readonly localAddress: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * Refuses web pages of other sites on local connections.
 *
 * @throws MemoryError `host_not_allowed`
 */
export function checkHost({ localAddress, headers }: Connection, { allowedHosts }: Access): void {
  const problem = hostProblem(localAddress, headers, allowedHosts);
  if (problem !== undefined) throw new MemoryError('host_not_allowed', problem);
}

/**
 * Identifies the caller of an endpoint.
 *
 * @throws MemoryError `memory_unauthorized`, `memory_forbidden` or `memory_invalid`
 */
export function checkCaller(headers: IncomingHttpHeaders, access: Access): Caller {
  const caller = callerOf(headers, access);
  if ('status' in caller) throw refused(caller);
  return caller;
}

/**
 * The namespace of a caller.
 *
 * @throws MemoryError `memory_invalid` if it named none and has to
 */
export function namespaceOf({ namespace }: Caller, { requiresNamespace }: Access): string {
  if (namespace === undefined && requiresNamespace) throw refused(NAMESPACE_REQUIRED);
  return namespace ?? DEFAULT_NAMESPACE;
}

/** @throws MemoryError `memory_forbidden` for the key of a namespace */
export function checkTrusted({ isTrusted }: Caller): void {
  if (!isTrusted)
    throw new MemoryError(
      'memory_forbidden',
      'the key of a namespace does not permit this: use MEMORY_API_KEY',
    );
}

const CODES = { 400: 'memory_invalid', 401: 'memory_unauthorized', 403: 'memory_forbidden' } as const;

function refused({ status, message }: Refusal): MemoryError {
  return new MemoryError(CODES[status], message);
}
