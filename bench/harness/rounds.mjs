// Interleaved rounds: a slow phase of the machine affects every case, so ratios stay valid.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { LOAD_CORE, pinned } from './processes.mjs';

const generatorOf = ({ frames, protocol }) => {
  const name = frames === undefined ? 'load.mjs' : 'stream-load.mjs';
  return fileURLToPath(new URL(protocol === undefined ? name : 'tls-load.mjs', import.meta.url));
};

/** One run of the generator. Resolves to its figures; rejects if a request failed, because a refusal is fast. */
export function load(request) {
  return new Promise((resolve, reject) => {
    const command = pinned(LOAD_CORE, process.execPath, [generatorOf(request), JSON.stringify(request)]);
    const child = spawn(...command, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code !== 0) return reject(new Error(`the load generator ended with code ${code}`));
      const figures = JSON.parse(text);
      if (figures.failed > 0) return reject(new Error(`${figures.failed} requests to ${request.url} failed`));
      resolve(figures);
    });
  });
}

/**
 * Runs every case once per round, in rotating order; resolves to a map from name to list of figures. `warmup`: seconds before
 * the first round; more than 8 are needed if the machine does other work.
 */
export async function interleave(cases, { rounds, seconds, warmup: first = 8 }) {
  const figures = new Map(cases.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < cases.length; turn += 1) {
      const { name, request } = cases[(turn + round) % cases.length];
      // Long in the first round, for the compiler; later only for the connections: after 3 s at c=32, V8 still spent a
      // seventh of the time compiling agctl's code, after 8 s a fortieth. A gateway runs for days.
      const warmup = round === 0 ? first : 1;
      figures.get(name).push(await load({ ...request, seconds, warmup }));
      if (process.stderr.isTTY) process.stderr.write(`\rround ${round + 1}/${rounds}, ${name}\x1b[K`);
    }
  }
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  return figures;
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The value that a quarter of the values are below: close to that of a machine without other work. */
export const lowerQuartile = (values) => [...values].sort((a, b) => a - b)[values.length >> 2];

/** Median over the rounds of a figure, relative to the reference in the same round. */
export function ratio(runs, reference, figure) {
  return median(runs.map((run, round) => figure(run) / figure(reference[round])));
}
