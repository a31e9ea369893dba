import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import { type ReplayedCassette, replayCassette, testGateway } from '../../src/library/testing/index.ts';
import { ERA_CLIENTS, type EraClient } from '../kit/era-clients.ts';
import { everythingHttp } from '../kit/everything-target.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { until } from '../kit/until.ts';

// Official clients of both SDK generations at a gateway, and then, without it and its servers, at the recording.

const WATCHED = 'test://watched-resource';

/** All that a client gets from the everything fixture. */
async function reportOf(client: EraClient): Promise<object> {
  const progress: number[] = [];
  const onprogress = (step: { progress: number }): void => void progress.push(step.progress);
  const report = {
    revision: client.revision,
    tools: await client.tools(),
    call: await client.call('test_simple_text'),
    resource: await client.read('test://static-text'),
    prompt: await client.prompt('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' }),
    completion: await client.complete('test_prompt_with_arguments', 'arg1', 'par'),
    progressing: await client.call('test_tool_with_progress', {}, { onprogress }),
    progress,
    logging: await client.call('test_tool_with_logging'),
    elicitation: await client.call('test_elicitation', { message: 'Who?' }),
    sampling: await client.call('test_sampling', { prompt: 'Say it' }),
    rounds: await client.call('test_input_required_result_multi_round'),
    atOnce: await client.call('test_input_required_result_multiple_inputs'),
    unknown: await client.call('no_such_tool').catch((error: unknown) => String(error)),
  };
  const controller = new AbortController();
  const cancelling = {
    signal: controller.signal,
    onprogress: () => controller.abort(new Error('cancelled')),
  };
  const waiting = client.call('test_wait', { name: 'cancelled' }, cancelling);
  const cancelled = await waiting.catch((error: unknown) => String(error));
  await client.watch(WATCHED);
  await client.call('test_trigger_tool_change');
  await client.call('test_trigger_prompt_change');
  await client.call('test_trigger_resource_update');
  await until(() => client.changes.length >= 3 && client.logged.length >= 3);
  return {
    ...report,
    cancelled,
    asked: client.asked.slice(0, 4),
    askedAtOnce: client.asked.slice(4).toSorted(),
    logged: client.logged,
    changes: client.changes.toSorted(),
  };
}

describe('a recording of the everything fixture', () => {
  const recorded = new Map<string, object>();
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let file: string;
  let replay: ReplayedCassette;

  beforeAll(async () => {
    folder = await temporaryFolder();
    file = join(folder.path, 'cassette.jsonl');
    const target = await everythingHttp('everything', 'both');
    const config = { mcp: { port: 3000, targets: [target.config] } } as GatewayConfig;
    {
      await using gateway = await testGateway(config, { record: file });
      for (const { client: name, connect } of ERA_CLIENTS) {
        await using client = await connect(`${gateway.url}/mcp`);
        recorded.set(name, await reportOf(client));
      }
    }
    await target.stop();
    replay = await replayCassette(file);
  });
  afterAll(async () => {
    await replay.close();
    await folder.remove();
  });

  test.each(ERA_CLIENTS)('$client gets the same from the recording', async ({ client: name, connect }) => {
    await using client = await connect(`${replay.url}/mcp`);
    expect(await reportOf(client)).toEqual(recorded.get(name));
    expect(replay.unmatched).toEqual([]);
  });

  test('clients can use a recording at the same time', async () => {
    const reports = ERA_CLIENTS.map(async ({ client: name, connect }) => {
      await using client = await connect(`${replay.url}/mcp`);
      expect(await reportOf(client)).toEqual(recorded.get(name));
    });
    await Promise.all(reports);
    expect(replay.unmatched).toEqual([]);
  });

  test('the file has no id of a session, and labels instead', () => {
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    const [head, ...exchanges] = lines.map((line) => JSON.parse(line));
    expect(head).toMatchObject({ cassette: 1, gateways: [{ name: 'mcp', port: 3000 }] });
    expect(JSON.stringify(exchanges)).not.toMatch(/mcp-session-id/i);
    const labels = new Set(exchanges.map(({ session }) => session));
    // Two clients have sessions; the requests of the others have none.
    expect([...labels].sort()).toEqual([
      expect.stringMatching(/^\w{8}$/),
      expect.stringMatching(/^\w{8}$/),
      undefined,
    ]);
  });
});
