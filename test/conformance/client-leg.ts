import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Check, type Revision, runCli, type Scenario, verdict } from './suite.ts';

/**
 * Scenarios for clients that a gateway can be judged by, as they are about more than sign-in, and how many of their checks
 * must succeed: some scenarios also pass when a client does nothing.
 */
const CLIENT_SCENARIOS: Record<Revision, Readonly<Record<string, number>>> = {
  '2025-11-25': {
    initialize: 1,
    tools_call: 2,
    'elicitation-sep1034-client-defaults': 5,
    'sse-retry': 3,
    'json-schema-2020-12-preservation': 9,
  },
  '2026-07-28': {
    tools_call: 2,
    'request-metadata': 6,
    'sep-2322-client-request-state': 5,
    'http-standard-headers': 9,
    'http-custom-headers': 18,
    'http-invalid-tool-headers': 12,
    'json-schema-ref-no-deref': 1,
    'json-schema-2020-12-preservation': 9,
  },
};

const client = fileURLToPath(new URL('client.ts', import.meta.url));

/** The slowest takes 2 s alone. */
const scenarioMs = '60000';

/**
 * Lets the official conformance suite judge the requests that arrive at its own MCP server, from a client (`client.ts`) through
 * the gateway.
 *
 * @param target `direct` leaves the gateway out
 */
async function runClientScenario(
  name: string,
  revision: Revision,
  target: 'gateway' | 'direct' = 'gateway',
): Promise<Scenario> {
  const dir = await mkdtemp(join(tmpdir(), 'conformance-results-'));
  // The suite splits the command at spaces.
  const command = [process.execPath, client, ...(target === 'direct' ? ['--direct'] : [])].join(' ');
  const args = ['--command', command, '--scenario', name, '--spec-version', revision];
  try {
    const { succeeded, output } = await runCli(['client', ...args, '--timeout', scenarioMs, '-o', dir]);
    const [results = ''] = await readdir(dir);
    const text = await readFile(join(dir, results, 'checks.json'), 'utf8').catch(() => '[]');
    const judged = verdict(name, true, JSON.parse(text) as Check[]);
    const reasons = succeeded ? judged.reasons : [...judged.reasons, `the client failed:\n${output}`];
    const isComplete = judged.succeeded === CLIENT_SCENARIOS[revision][name];
    return { ...judged, reasons, passed: succeeded && judged.passed && isComplete };
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** Runs all of them for one revision, two at a time. */
export async function runClientLeg(
  revision: Revision,
  target?: 'gateway' | 'direct',
): Promise<{ scenarios: Scenario[]; passed: number; required: number }> {
  const names = Object.keys(CLIENT_SCENARIOS[revision]);
  const scenarios: Scenario[] = [];
  const rest = names.entries();
  const work = async (): Promise<void> => {
    for (const [index, name] of rest) scenarios[index] = await runClientScenario(name, revision, target);
  };
  await Promise.all([work(), work()]);
  return { scenarios, passed: scenarios.filter(({ passed }) => passed).length, required: names.length };
}
