// wrk as the generator of `bench scale`: it needs much less CPU time per request than a generator in Node.js.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { pinned } from '../harness/processes.mjs';
import { CORES } from './cores.mjs';

const script = fileURLToPath(new URL('wrk.lua', import.meta.url));

/**
 * Loads a URL for whole `seconds`; `bodyFile` makes it a POST. Resolves to `{ completed, rate, p99 }`, with the 99th
 * percentile in µs; rejects if a request failed.
 */
export async function wrk({ url, headers = {}, bodyFile, connections }, seconds) {
  const fields = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, ...fields, '-s', script, url];
  const body = bodyFile === undefined ? [] : ['--', bodyFile];
  const child = spawn(...pinned(CORES, 'wrk', [...args, ...body]), { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text += chunk;
  });
  await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  const [, json] = /^FIGURES (.*)$/m.exec(text) ?? [];
  if (json === undefined) throw new Error(`wrk gave no figures:\n${text}`);
  const { completed, micros, p99, failed } = JSON.parse(json);
  if (failed > 0 || completed === 0) throw new Error(`${failed} of ${completed} requests to ${url} failed`);
  return { completed, rate: completed / (micros / 1e6), p99 };
}
