import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { mcpConfig } from '../kit/config.ts';
import type { Eras } from '../kit/everything/http.ts';
import { everythingHttp, everythingStdio } from '../kit/everything-target.ts';
import { gateway } from '../kit/gateway.ts';

// What client programs in other languages print about their use of the everything fixture, through the gateway.

/** Targets whose revisions differ from those of the clients, in both directions. */
export const TARGETS = [
  { target: 'a stdio server with sessions only', transport: 'stdio', eras: 'legacy' },
  { target: 'a stdio server with 2026-07-28 only', transport: 'stdio', eras: 'modern' },
  { target: 'an HTTP server with sessions only', transport: 'http', eras: 'legacy' },
  { target: 'an HTTP server with 2026-07-28 only', transport: 'http', eras: 'modern' },
  { target: 'an HTTP server with both', transport: 'http', eras: 'both' },
] as const;

export interface Report {
  readonly revision: string;
  /** Length of the list. */
  readonly tools: number;
  /** Texts of the results. */
  readonly call: string;
  readonly resource: string;
  readonly prompt: string;
  readonly completion: readonly string[];
  readonly progress: readonly number[];
  readonly elicitation: string;
  readonly sampling: string;
  /** URI of the resource that was reported as updated. */
  readonly updated: string;
  /** Whether the server noticed that a call was cancelled. */
  readonly cancelled: boolean;
}

const EXPECTED: Omit<Report, 'revision'> = {
  tools: expect.toSatisfy((length: number) => length > 20) as number,
  call: 'plain text from the fixture',
  resource: 'text of a resource',
  prompt: 'from a to b',
  completion: ['paris', 'parma'],
  progress: expect.toSatisfy((steps: readonly number[]) => steps.slice(-3).join() === '0,50,100') as number[],
  elicitation: expect.stringMatching(/^accept .*ada@a\.test/) as string,
  sampling: expect.stringContaining('sampled') as string,
  updated: 'test://watched-resource',
  cancelled: true,
};

/**
 * Runs a program with the gateway's URL and a revision behind its arguments, and expects the report of a client that could use
 * everything at that revision.
 */
export async function expectReport(
  program: readonly string[],
  revision: string,
  { transport, eras }: { readonly transport: 'stdio' | 'http'; readonly eras: Eras },
  differences: Partial<Report> = {},
): Promise<void> {
  const target =
    transport === 'stdio' ? everythingStdio('everything', eras) : await everythingHttp('everything', eras);
  try {
    // Some clients cancel a call by closing its stream: at 2025-11-25 it is cancelled when it can no longer be resumed.
    await using gate = await gateway(mcpConfig([target.config]), { limits: { resumeTimeout: 2_000 } });
    const [file, ...args] = [...program, `${gate.url}/mcp`, revision];
    const { stdout } = await promisify(execFile)(file as string, args, { timeout: 50_000 });
    expect(JSON.parse(stdout)).toEqual({ ...EXPECTED, revision, ...differences });
  } finally {
    await target.stop();
  }
}
