import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { ERA_CLIENTS, type EraClient } from '../../kit/era-clients.ts';
import { type EverythingTarget, everythingHttp, everythingStdio } from '../../kit/everything-target.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { until } from '../../kit/until.ts';

// Official clients in front of two targets of different protocol eras.

const WATCHED = 'test://watched-resource';

let targets: EverythingTarget[];
let gate: TestGateway;
beforeAll(async () => {
  targets = [everythingStdio('old', 'legacy'), await everythingHttp('new', 'modern')];
  gate = await gateway(mcpConfig(targets.map(({ config }) => config)));
});
afterAll(async () => {
  await gate.close();
  await Promise.all(targets.map((target) => target.stop()));
});

describe.each(ERA_CLIENTS)('a target with sessions and one with 2026-07-28 only: $client', (each) => {
  let client: EraClient;
  beforeAll(async () => {
    client = await each.connect(`${gate.url}/mcp`);
  });
  afterAll(() => client[Symbol.asyncDispose]());

  test('agrees on the latest revision that it has', () => {
    expect(client.revision).toBe(each.revision);
  });

  test('lists the tools of both', async () => {
    // A target that takes longer than 2 s to start joins later.
    await until(async () => {
      const tools = await client.tools();
      return tools.includes('old_test_simple_text') && tools.includes('new_test_simple_text');
    });
  });

  describe.each(['old', 'new'])('target %s', (target) => {
    test('calls tools, reads resources, gets and completes prompts', async () => {
      expect(await client.call(`${target}_test_simple_text`)).toBe('plain text from the fixture');
      expect(await client.read(`${target}+test://static-text`)).toBe('text of a resource');
      const prompt = `${target}_test_prompt_with_arguments`;
      expect(await client.prompt(prompt, { arg1: 'a', arg2: 'b' })).toBe('from a to b');
      expect(await client.complete(prompt, 'arg1', 'par')).toEqual(['paris', 'parma']);
    });

    test('receives progress and log messages of a call', async () => {
      const progress: number[] = [];
      const onprogress = (step: { progress: number }): void => void progress.push(step.progress);
      expect(await client.call(`${target}_test_tool_with_progress`, {}, { onprogress })).toBe('done');
      expect(progress).toEqual([0, 50, 100]);
      client.logged.length = 0;
      expect(await client.call(`${target}_test_tool_with_logging`)).toBe('logged');
      await until(() => client.logged.length === 3);
      expect(client.logged).toEqual(['first of three', 'second of three', 'third of three']);
    });

    test('answers elicitation and sampling', async () => {
      client.asked.length = 0;
      const asking = client.call(`${target}_test_elicitation`, { message: 'Who?' });
      expect(await asking).toMatch(/^accept .*ada@a\.test/);
      expect(await client.call(`${target}_test_sampling`, { prompt: 'Say it' })).toContain('sampled');
      expect(client.asked).toEqual(['elicitation/create', 'sampling/createMessage']);
    });

    test('receives changes of lists and resources', async () => {
      await using listener = await each.connect(`${gate.url}/mcp`);
      await listener.watch(`${target}+${WATCHED}`);
      const resource = `notifications/resources/updated ${target}+${WATCHED}`;
      await listener.call(`${target}_test_trigger_tool_change`);
      await listener.call(`${target}_test_trigger_resource_update`);
      await until(() => listener.changes.includes(resource));
      await until(() => listener.changes.includes('notifications/tools/list_changed'));
    });
  });
});
