import { expect, test } from 'vitest';
import { CLIENT_SCENARIOS, runClientLeg } from './client-leg.ts';
import type { Revision } from './suite.ts';

test.each(Object.keys(CLIENT_SCENARIOS) as Revision[])(
  'requests of a client at revision %s that the gateway forwards satisfy every conformance scenario for clients',
  { timeout: 240_000 },
  async (revision) => {
    const { scenarios, passed, required } = await runClientLeg(revision);
    expect(scenarios.filter((scenario) => !scenario.passed)).toEqual([]);
    expect(passed).toBe(required);
  },
);
