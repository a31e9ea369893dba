import { describe, expect, test } from 'vitest';
import { memoryAdapter } from '../kit/memory-adapter.ts';
import { type Revision, runSuite } from './suite.ts';

/** What the official suite asks of any server; the other scenarios call tools, prompts and resources of its fixture. */
const ASKED: Record<Revision, readonly string[]> = {
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  '2026-07-28': [
    'tools-list',
    'server-sse-multiple-streams',
    'sep-2164-resource-not-found',
    'dns-rebinding-protection',
    'input-required-result-unsupported-methods',
    'http-header-validation',
  ],
};

describe('the official conformance suite on the memory adapter', () => {
  test.concurrent.each(Object.entries(ASKED))(
    'the memory adapter passes the official conformance suite at %s',
    { timeout: 120_000 },
    async (revision, asked) => {
      await using adapter = await memoryAdapter('http://127.0.0.1:1');
      const scenarios = await runSuite(`${adapter.url}/mcp`, revision as Revision);
      const missed = asked.filter((name) => !scenarios.some((one) => one.name === name && one.passed));
      expect(scenarios.filter(({ name }) => missed.includes(name))).toEqual([]);
      expect(missed).toEqual([]);
    },
  );
});
