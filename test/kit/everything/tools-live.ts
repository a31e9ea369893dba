import { setTimeout as delay } from 'node:timers/promises';
import type { ServerContext } from '@modelcontextprotocol/server';
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

/** Tools that do something besides answering: they log, report progress, announce changes, hang up. */
export function addLiveTools({ server, announce }: Fixture): void {
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
