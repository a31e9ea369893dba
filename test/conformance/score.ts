import { readFile } from 'node:fs/promises';
import { type Revision, runSuite, type Scenario } from './suite.ts';
import { type Endpoint, type OtherServer, startGatewayOf, startTarget, type Target } from './targets.ts';

/** What to judge, and by which rules. */
export interface Trial {
  revision: Revision;
  target: Target;
  /** Judged instead of the fixture; `target` then only says whether the gateway is in between. */
  server?: OtherServer | undefined;
  /** The `agctl.js` to run; default: the one of this checkout. */
  bin?: string;
  workers?: number;
  searches?: boolean;
}

/** The outcome of one run of the suite. */
export interface Score {
  scenarios: Scenario[];
  /** Required scenarios that passed. */
  passed: number;
  /** Required scenarios. */
  required: number;
}

/** Each session starts the process of a stdio server, which takes seconds in some languages. */
const OTHER_SCENARIO_MS = 30_000;

/** @throws Error for a command without the gateway: the suite judges servers over HTTP only */
function start({ target, server, ...program }: Trial): Promise<Pick<Endpoint, 'url' | 'stop'>> {
  if (server === undefined) return startTarget(target, program);
  if (target !== 'direct') return startGatewayOf(server, program);
  if ('command' in server) throw new Error('a stdio server can only be judged through the gateway');
  return Promise.resolve({ url: server.url, stop: () => Promise.resolve() });
}

/**
 * Starts the target, lets the conformance suite judge it, and stops it again.
 *
 * @throws Error when the target does not start, does not stop, or could not be judged
 */
export async function runConformance(trial: Trial): Promise<Score> {
  const endpoint = await start(trial);
  let scenarios: Scenario[];
  try {
    await warmUp(endpoint.url);
    scenarios = await runSuite(endpoint.url, trial.revision, trial.server && OTHER_SCENARIO_MS);
  } finally {
    await endpoint.stop();
  }
  const required = scenarios.filter((scenario) => scenario.required);
  return {
    scenarios,
    passed: required.filter(({ passed }) => passed).length,
    required: required.length,
  };
}

/**
 * Judges a server through the gateway and by itself: a server may miss scenarios, but the gateway must not add to them.
 *
 * @param direct where the same server answers over HTTP
 * @returns the score through the gateway, and the scenarios, also those not required, that only the server itself passes
 * @throws Error when the server or the gateway could not be judged
 */
export async function compareWithDirect(
  revision: Revision,
  server: OtherServer,
  direct: string,
): Promise<Score & { lost: Scenario[] }> {
  const alone = await runConformance({ revision, target: 'direct', server: { url: direct } });
  const passes = new Set(alone.scenarios.filter(({ passed }) => passed).map(({ name }) => name));
  const score = await runConformance({ revision, target: 'http', server });
  return { ...score, lost: score.scenarios.filter(({ name, passed }) => !passed && passes.has(name)) };
}

/** Starts the processes of the target: the suite allows 1 s for some responses, which is about what it judges, not how fast. */
async function warmUp(url: string): Promise<void> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/list',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: meta } }),
  }).then((response) => response.text());
}

/** How many required scenarios must pass at `revision`; undefined when `expected.json` pins no number for it. */
export async function expectedScore(revision: Revision): Promise<number | undefined> {
  const text = await readFile(new URL('expected.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as Partial<Record<Revision, number>>)[revision];
}
