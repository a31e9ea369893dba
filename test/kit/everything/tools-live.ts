import { setTimeout as delay } from 'node:timers/promises';
import type { ServerContext } from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { Fixture } from './server.ts';
import { textResult } from './tools-content.ts';

// Long enough that two notices never leave in one write, so a relay that keeps only the last one is caught.
const stepMs = 50;

async function logThreeTimes(ctx: ServerContext): Promise<void> {
  await ctx.mcpReq.log('info', 'first of three');
  await delay(stepMs);
  await ctx.mcpReq.log('info', 'second of three');
  await delay(stepMs);
  await ctx.mcpReq.log('info', 'third of three');
}

async function reportProgress(ctx: ServerContext): Promise<void> {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progress > 0) await delay(stepMs);
    if (progressToken === undefined) continue;
    const params = { progressToken, progress, total: 100 };
    await ctx.mcpReq.notify({ method: 'notifications/progress', params });
  }
}

const waitArguments = z.object({ name: z.string().describe('what test_cancelled lists') });

/** Calls of `test_wait` that were cancelled. Since 2026-07-28 each request has its own instance, hence one list for all. */
const cancelled: string[] = [];

function addWaiting({ server }: Fixture): void {
  server.registerTool(
    'test_wait',
    { description: 'Waits to be cancelled', inputSchema: waitArguments },
    async ({ name }, { mcpReq }) => {
      await mcpReq.notify({ method: 'notifications/progress', params: waitProgress(mcpReq._meta) });
      await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve));
      cancelled.push(name);
      return textResult('cancelled');
    },
  );
  server.registerTool('test_cancelled', { description: 'Lists cancelled calls of test_wait' }, () =>
    textResult(JSON.stringify(cancelled)),
  );
}

/** Says that a call of `test_wait` has begun. */
function waitProgress(meta: ServerContext['mcpReq']['_meta']): {
  progressToken: string | number;
  progress: number;
} {
  return { progressToken: meta?.progressToken ?? '', progress: 1 };
}

/** Tools that do something besides answering: they log, report progress, announce changes, hang up, wait. */
export function addLiveTools(fixture: Fixture): void {
  const { server, announce } = fixture;
  addWaiting(fixture);
  for (const name of ['test_tool_with_logging', 'test_logging_tool']) {
    server.registerTool(name, { description: 'Logs three times at level info' }, async (ctx) => {
      await logThreeTimes(ctx);
      return textResult('logged');
    });
  }
  server.registerTool(
    'test_tool_with_progress',
    { description: 'Reports 0, 50 and 100 of 100' },
    async (ctx) => {
      await reportProgress(ctx);
      return textResult('done');
    },
  );
  server.registerTool('test_reconnection', { description: 'Hangs up before it answers' }, async (ctx) => {
    // Only HTTP with stored events can hang up and deliver later; over stdio the answer just comes.
    ctx.http?.closeSSE?.();
    await delay(stepMs);
    return textResult('answered after the stream was closed');
  });
  server.registerTool('test_trigger_tool_change', { description: 'Announces a new list of tools' }, () => {
    announce.toolsChanged();
    return textResult('announced');
  });
  server.registerTool(
    'test_trigger_prompt_change',
    { description: 'Announces a new list of prompts' },
    () => {
      announce.promptsChanged();
      return textResult('announced');
    },
  );
}
