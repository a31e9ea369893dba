import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { ERA_CLIENTS, type EraClient } from '../../kit/era-clients.ts';
import type { Eras } from '../../kit/everything/http.ts';
import { type EverythingTarget, everythingHttp, everythingStdio } from '../../kit/everything-target.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { until } from '../../kit/until.ts';

// Official clients in front of the everything fixture, which is made with the official server SDK.

const WATCHED = 'test://watched-resource';

const NAMES: Readonly<Record<Eras, string>> = {
  both: 'both eras',
  legacy: 'sessions only',
  modern: '2026-07-28 only',
};

const TARGETS = (['both', 'legacy', 'modern'] as const).flatMap((eras) => [
  { target: `a stdio server with ${NAMES[eras]}`, start: async () => everythingStdio('everything', eras) },
  { target: `an HTTP server with ${NAMES[eras]}`, start: () => everythingHttp('everything', eras) },
]);

describe.each(TARGETS)('$target', ({ start }) => {
  let upstream: EverythingTarget;
  let gate: TestGateway;
  beforeAll(async () => {
    upstream = await start();
    gate = await gateway(mcpConfig([upstream.config]));
  });
  afterAll(async () => {
    await gate.close();
    await upstream.stop();
  });

  describe.each(ERA_CLIENTS)('$client', ({ client: name, connect, revision }) => {
    let client: EraClient;
    beforeAll(async () => {
      client = await connect(`${gate.url}/mcp`);
    });
    afterAll(() => client[Symbol.asyncDispose]());

    test('agrees on the latest revision that it has', () => {
      expect(client.revision).toBe(revision);
    });

    test('lists and calls tools, reads resources, gets and completes prompts', async () => {
      expect(await client.tools()).toContain('test_simple_text');
      expect(await client.call('test_simple_text')).toBe('plain text from the fixture');
      expect(await client.read('test://static-text')).toBe('text of a resource');
      expect(await client.prompt('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' })).toBe('from a to b');
      expect(await client.complete('test_prompt_with_arguments', 'arg1', 'par')).toEqual(['paris', 'parma']);
    });

    test('receives progress and log messages of a call', async () => {
      const progress: number[] = [];
      const onprogress = (step: { progress: number }): void => void progress.push(step.progress);
      expect(await client.call('test_tool_with_progress', {}, { onprogress })).toBe('done');
      expect(progress).toEqual([0, 50, 100]);
      expect(await client.call('test_tool_with_logging')).toBe('logged');
      await until(() => client.logged.length === 3);
      expect(client.logged).toEqual(['first of three', 'second of three', 'third of three']);
    });

    test('answers elicitation and sampling', async () => {
      expect(await client.call('test_elicitation', { message: 'Who?' })).toMatch(/^accept .*ada@a\.test/);
      expect(await client.call('test_sampling', { prompt: 'Say it' })).toContain('sampled');
      expect(client.asked).toEqual(['elicitation/create', 'sampling/createMessage']);
    });

    test('answers several requests of one call, one after another', async () => {
      client.asked.length = 0;
      expect(await client.call('test_input_required_result_multi_round')).toBe('the colour is red');
      expect(client.asked).toEqual(['elicitation/create', 'elicitation/create']);
    });

    test('answers several requests of one call at once', async () => {
      client.asked.length = 0;
      expect(await client.call('test_input_required_result_multiple_inputs')).toBe('Ada has 1 roots');
      expect(client.asked.toSorted()).toEqual(['elicitation/create', 'roots/list', 'sampling/createMessage']);
    });

    test('receives changes of lists and resources', async () => {
      await client.watch(WATCHED);
      await client.call('test_trigger_tool_change');
      await client.call('test_trigger_prompt_change');
      await client.call('test_trigger_resource_update');
      await until(() => client.changes.length >= 3);
      expect(client.changes.toSorted()).toEqual([
        'notifications/prompts/list_changed',
        `notifications/resources/updated ${WATCHED}`,
        'notifications/tools/list_changed',
      ]);
    });

    test('cancels a call at the server', async () => {
      const call = `${gate.port} ${name}`;
      const controller = new AbortController();
      const waiting = client.call(
        'test_wait',
        { name: call },
        { signal: controller.signal, onprogress: () => controller.abort() },
      );
      await expect(waiting).rejects.toThrow();
      await until(async () => JSON.parse(await client.call('test_cancelled')).includes(call));
    });
  });
});
