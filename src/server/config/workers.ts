import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { LIMITS } from '../../core/limits.ts';
import type { Problem } from '../kernel/compile-context.ts';

const auto = z.literal('auto');
const count = z.int().min(1).max(256);

/** `config.workers`, and upstream's name for it, which also accepts a number in quotes. */
export const workerFields = {
  workers: z
    .union([count, auto], { error: 'expected a whole number from 1 to 256 without quotes, or `auto`' })
    .optional()
    .describe(
      'Number of processes that handle requests, or `auto` for one per core that the process may use, as far as the memory of its container suffices (192 MiB each). All share ports, sessions, rate limits, metrics and the admin server. `maxSessions` and `maxChildren` are divided among them. 1 by default: requests are handled without a second process.',
    ),
  workerThreads: z
    .union([count, auto, z.string().regex(/^[1-9]\d{0,2}$/, { error: 'expected a number or `auto`' })])
    .optional()
    .describe("Upstream's name for `workers`."),
};

interface Configured {
  readonly config: {
    readonly workers?: number | 'auto' | undefined;
    readonly workerThreads?: number | string | undefined;
  };
}

/** What a process may use. */
interface Machine {
  readonly cores: number;
  /** Bytes of the container, or of the machine; 0 if they are not known. */
  readonly memory: number;
}

const thisMachine = (): Machine => ({ cores: availableParallelism(), memory: process.constrainedMemory() });

/** Number of processes that handle requests. `auto`: one per core, as far as the memory suffices. */
export function workerCount(
  { config: { workers, workerThreads } }: Configured,
  machine: () => Machine = thisMachine,
): number {
  const configured = workers ?? workerThreads ?? 1;
  if (configured !== 'auto') return Number(configured);
  const { cores, memory } = machine();
  if (memory === 0) return cores;
  const room = Math.floor((memory - LIMITS.primaryMemory) / LIMITS.workerMemory);
  return Math.max(1, Math.min(cores, room));
}

type LocatedProblem = Problem & { readonly path: readonly (string | number)[] };

/** Reports both names at once, and what only one process can do. */
export function workerProblems(
  configured: Configured & { readonly binds: readonly { readonly tunnelProtocol: string }[] },
): LocatedProblem[] {
  const { config, binds } = configured;
  const tunnels =
    workerCount(configured) < 2
      ? []
      : [...binds.entries()].filter(([, bind]) => bind.tunnelProtocol === 'connect');
  const problems = tunnels.map(
    ([index]): LocatedProblem => ({
      code: 'AGW0105',
      path: ['binds', index, 'tunnelProtocol'],
      message: 'tunnels cannot be used with several `workers`: a tunnel leads to a port of the same process',
      help: 'remove `workers`',
    }),
  );
  if (config.workers === undefined || config.workerThreads === undefined) return problems;
  return [
    ...problems,
    {
      code: 'AGW0105',
      path: ['config', 'workerThreads'],
      message: '`workers` and `workerThreads` cannot be used together',
      label: 'another name for `workers`',
      help: 'remove one of them',
      atKey: true,
    },
  ];
}
