import { describe, expect, test } from 'vitest';
import { expectedScore, runConformance } from './score.ts';
import type { Scenario } from './suite.ts';

const missed = (scenarios: Scenario[]) =>
  scenarios
    .filter(({ required, passed }) => required && !passed)
    .map(({ name, reasons }) => ({ name, reasons }));

// A run takes 2 s alone; the suite itself gives a hanging server 30 s a scenario.
const patience = 120_000;

// Revision 2026-07-28 is judged by `npm test` on its own (scripts/check.mjs): the suite gives some responses one second.
describe('the official conformance suite', () => {
  test('the conformance fixture passes every required scenario of the official suite', {
    timeout: patience,
  }, async () => {
    const { scenarios, passed, required } = await runConformance({
      revision: '2025-11-25',
      target: 'direct',
    });
    expect(missed(scenarios)).toEqual([]);
    expect(passed).toBe(required);
  });

  test('the gateway with tool search and bundles has the pinned conformance score', {
    timeout: patience,
  }, async () => {
    const { scenarios, passed } = await runConformance({
      revision: '2025-11-25',
      target: 'stdio',
      searches: true,
    });
    expect(missed(scenarios)).toEqual([]);
    expect(passed).toBe(await expectedScore('2025-11-25'));
  });

  test.each(['stdio', 'http'] as const)(
    'the gateway in front of a server over %s has the pinned conformance score and passes the stream polling scenarios',
    { timeout: patience },
    async (target) => {
      const { scenarios, passed } = await runConformance({ revision: '2025-11-25', target });
      expect(missed(scenarios)).toEqual([]);
      expect(passed).toBe(await expectedScore('2025-11-25'));
      const polling = scenarios.find(({ name }) => name === 'server-sse-polling');
      // The third check is about a client that must come back; the gateway does that itself and answers on the stream.
      expect(polling).toMatchObject({ passed: true, succeeded: 2, decided: 2, reasons: [] });
    },
  );
});
