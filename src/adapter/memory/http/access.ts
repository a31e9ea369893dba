import type { IncomingHttpHeaders } from 'node:http';
import { bearerProblem } from '../../bearer.ts';
import { hostProblem } from '../../host-check.ts';
import { MemoryFailure } from './failure.ts';

export interface Access {
  /** Bearer token that callers must have; none is fine on a loopback address only. */
  readonly key: string | undefined;
  /** Host names beside the loopback ones that local connections may say. */
  readonly allowedHosts: ReadonlySet<string>;
}

interface Caller {
  readonly localAddress: string | undefined;
  readonly headers: Pick<IncomingHttpHeaders, 'host' | 'origin' | 'authorization'>;
}

/**
 * Refuses pages of other sites on local connections, and callers without the key.
 *
 * @throws MemoryFailure `host_not_allowed` or `memory_unauthorized`
 */
export function checkAccess(
  { localAddress, headers }: Caller,
  { key, allowedHosts }: Access,
  isOpen: boolean,
): void {
  const problem = hostProblem(localAddress, headers, allowedHosts);
  if (problem !== undefined) throw new MemoryFailure('host_not_allowed', problem);
  if (key === undefined || isOpen) return;
  const refused = bearerProblem(headers.authorization, key);
  if (refused !== undefined) throw new MemoryFailure('memory_unauthorized', refused);
}
