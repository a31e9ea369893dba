import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** The protocol revisions that the pinned suite has a list of requirements for. */
export type Revision = '2025-11-25' | '2026-07-28';

/** The judge's verdict on one scenario. */
export interface Scenario {
  name: string;
  /** Whether the revision requires it; others are run and shown, but count for nothing. */
  required: boolean;
  passed: boolean;
  /** Checks that succeeded, of those that were decided at all. */
  succeeded: number;
  decided: number;
  /** What the judge objected to: one line for each check that failed, or passed with a warning. */
  reasons: string[];
}

export interface Check {
  id: string;
  status: string;
  errorMessage?: string;
}

interface Requirements {
  server: string[];
  not_scored: { scenario: string; leg: string }[];
}

/** The fixture's slowest scenario takes under a second; the suite's own 30 s would make a dead server cost a quarter of an hour. */
const FIXTURE_SCENARIO_MS = 10_000;

const suite = new URL('../../node_modules/@modelcontextprotocol/conformance/', import.meta.url);
const cli = fileURLToPath(new URL('../../node_modules/.bin/conformance', import.meta.url));

/**
 * Lets the official conformance suite judge an MCP server.
 *
 * @param url where the server answers; a loopback address, or a scenario about Host fails
 * @param scenarioMs how long one scenario may take, including the start of the server's process
 * @returns one verdict for each server scenario of the revision, required ones first
 * @throws Error with the suite's output when it left no verdicts at all
 */
export async function runSuite(
  url: string,
  revision: Revision,
  scenarioMs = FIXTURE_SCENARIO_MS,
): Promise<Scenario[]> {
  const requirements = await readRequirements(revision);
  const dir = await mkdtemp(join(tmpdir(), 'conformance-results-'));
  try {
    const { output } = await runCli([
      'server',
      '--url',
      url,
      '--requirements',
      revision,
      '--timeout',
      String(scenarioMs),
      '-o',
      dir,
    ]);
    const checks = await readChecks(dir);
    if (checks.size === 0) throw new Error(`the conformance suite judged nothing:\n${output}`);
    const extra = requirements.not_scored.filter(({ leg }) => leg === 'server');
    return [
      ...requirements.server.map((name) => verdict(name, true, checks.get(name))),
      ...extra.map(({ scenario }) => verdict(scenario, false, checks.get(scenario))),
    ];
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function readRequirements(revision: Revision): Promise<Requirements> {
  return parse(await readFile(new URL(`requirements/${revision}.yaml`, suite), 'utf8')) as Requirements;
}

/** Runs the suite. Its verdicts on disk say more than the exit code, and are complete also when some failed. */
export function runCli(args: string[]): Promise<{ succeeded: boolean; output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [cli, ...args], { maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      resolve({ succeeded: error === null, output: `${stdout}${stderr}`.slice(-4000) });
    });
  });
}

/** Checks by scenario. The suite writes each into `server-<scenario>-<time>/checks.json`. */
async function readChecks(dir: string): Promise<Map<string, Check[]>> {
  const found = new Map<string, Check[]>();
  for (const entry of await readdir(dir)) {
    const name = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)?.[1];
    if (name === undefined) continue;
    const text = await readFile(join(dir, entry, 'checks.json'), 'utf8').catch(() => '[]');
    found.set(name, JSON.parse(text) as Check[]);
  }
  return found;
}

/** A scenario passes as in the suite's own summary, when no check failed; but without a success it does not. */
export function verdict(name: string, required: boolean, checks: Check[] = []): Scenario {
  const succeeded = checks.filter(({ status }) => status === 'SUCCESS').length;
  const failed = checks.filter(({ status }) => status === 'FAILURE');
  return {
    name,
    required,
    passed: failed.length === 0 && succeeded > 0,
    succeeded,
    decided: succeeded + failed.length,
    reasons: checks
      .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
      .map(({ id, errorMessage }) => `${id}: ${errorMessage ?? 'no reason given'}`),
  };
}
