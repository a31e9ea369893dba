// npm run conformance -- [--revision 2025-11-25] [--target stdio|http|direct] [--bin PATH] [--workers N] [--searches] [--quiet]
// npm run conformance -- --command 'node server.js' | --url http://127.0.0.1:3000/mcp [--target direct] [--revision …]
// npm run conformance -- --url URL --target compare [--command 'node server.js'] [--revision …]
// npm run conformance -- --leg client [--revision 2025-11-25] [--target http|direct]
// The first judges what clients of the gateway get, the second the same with another server than the fixture (`--target direct`:
// without the gateway), the third both, where only scenarios that the server itself passes count (`--command`: the same server
// over stdio, behind the gateway), the fourth what targets get from a client through the gateway.
// Prints one line for each scenario and the score. Exits 1 when the score is below the pinned one, with another server when
// a required scenario failed, with `compare` when the gateway failed one that the server passes; 2 on a wrong option, and 70 when nothing could be judged.

import { parseArgs } from 'node:util';
import { runClientLeg } from './client-leg.ts';
import { compareWithDirect, expectedScore, runConformance } from './score.ts';

const choices = {
  leg: ['server', 'client'],
  revision: ['2025-11-25', '2026-07-28'],
  target: ['stdio', 'http', 'direct', 'compare'],
};

function readOptions() {
  const { values } = parseArgs({
    options: {
      leg: { type: 'string', default: 'server' },
      revision: { type: 'string', default: '2025-11-25' },
      target: { type: 'string', default: 'stdio' },
      command: { type: 'string' },
      url: { type: 'string' },
      bin: { type: 'string' },
      workers: { type: 'string' },
      // With tool search and bundles.
      searches: { type: 'boolean', default: false },
      // Prints only required scenarios that failed.
      quiet: { type: 'boolean', default: false },
    },
  });
  for (const [name, allowed] of Object.entries(choices)) {
    if (!allowed.includes(values[name])) throw new Error(`--${name} must be one of ${allowed.join(', ')}`);
  }
  const { command, url, leg, target } = values;
  if (target === 'compare' && url === undefined)
    throw new Error('--target compare needs --url, where the server answers without the gateway');
  if (target !== 'compare' && command !== undefined && (url !== undefined || target === 'direct'))
    throw new Error('--command excludes --url (without --target compare) and --target direct');
  if (leg === 'client' && (command ?? url) !== undefined)
    throw new Error('--leg client excludes --command and --url');
  return values;
}

/** The server that is judged instead of the fixture, if any. */
function otherServer({ command, url }) {
  if (command !== undefined) return { command };
  return url === undefined ? undefined : { url };
}

function line({ name, required, passed, succeeded, decided, reasons }) {
  const head = `${passed ? 'PASS' : 'FAIL'}  ${name}  ${succeeded}/${decided}${required ? '' : '  (not required)'}`;
  return [head, ...reasons.map((reason) => `      ${reason}`)].join('\n');
}

async function compare({ revision, command, url }) {
  const server = command === undefined ? { url } : { command };
  const { passed, required, lost } = await compareWithDirect(revision, server, url);
  for (const scenario of lost) console.log(line(scenario));
  console.log(`required scenarios: ${passed}/${required}; passed by the server only: ${lost.length}`);
  return lost.length === 0 ? 0 : 1;
}

async function main(options) {
  if (options.target === 'compare') return compare(options);
  const isClient = options.leg === 'client';
  const server = otherServer(options);
  const { scenarios, passed, required } = isClient
    ? await runClientLeg(options.revision, options.target === 'direct' ? 'direct' : 'gateway')
    : await runConformance({ ...options, workers: options.workers && Number(options.workers), server });
  const pinned = isClient || server !== undefined ? required : await expectedScore(options.revision);
  for (const scenario of scenarios)
    if (!options.quiet || (scenario.required && !scenario.passed)) console.log(line(scenario));
  console.log(`required scenarios: ${passed}/${required}`);
  // Without a pinned score a run only reports.
  if (pinned === undefined || passed >= pinned) return 0;
  console.error(`expected at least ${pinned} at ${options.revision}`);
  return 1;
}

try {
  const options = readOptions();
  process.exitCode = await main(options).catch((error) => {
    console.error(error.message);
    return 70;
  });
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
