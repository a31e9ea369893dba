import type { IncomingHttpHeaders } from 'node:http';
import { bearerProblem, hostProblem } from '../../access-checks.ts';
import { MemoryError } from './memory-error.ts';

export interface Access {
  /** Bearer token that callers must send; may be undefined only on a loopback address. */
  readonly key: string | undefined;
  /** Host names that local connections may use, in addition to loopback names. */
  readonly allowedHosts: ReadonlySet<string>;
}

interface Caller {
  readonly localAddress: string | undefined;
  readonly headers: Pick<IncomingHttpHeaders, 'host' | 'origin' | 'authorization'>;
}

/**
 * Refuses web pages of other sites on local connections, and callers without the key.
 *
 * @throws MemoryError `host_not_allowed` or `memory_unauthorized`
 */
export function checkAccess(
  { localAddress, headers }: Caller,
  { key, allowedHosts }: Access,
  isOpen: boolean,
): void {
  const problem = hostProblem(localAddress, headers, allowedHosts);
  if (problem !== undefined) throw new MemoryError('host_not_allowed', problem);
  if (key === undefined || isOpen) return;
  const refused = bearerProblem(headers.authorization, key);
  if (refused !== undefined) throw new MemoryError('memory_unauthorized', refused);
}
