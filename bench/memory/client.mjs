// An MCP client over stdio, and the texts used by all benchmarks of it.
import { readFileSync } from 'node:fs';
import { createHistogram, performance } from 'node:perf_hooks';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

/** Starts a server with Node.js and connects; `start` is the time to the first response in ms. */
export async function connect(args, env = {}) {
  const started = performance.now();
  const client = new Client({ name: 'bench', version: '1' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    env,
    stderr: 'ignore',
  });
  await client.connect(transport);
  await client.listTools();
  const start = performance.now() - started;
  const call = async (name, args_) => {
    const result = await client.callTool({ name, arguments: args_ }, undefined, { timeout: 300_000 });
    if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
    return result;
  };
  return { call, start, rss: () => rssOf(transport.pid), close: () => client.close() };
}

/** Runs the calls one after another; the first tenth only warms up. Times in µs. */
export async function timed(count, run) {
  for (let index = 0; index < count / 10; index += 1) await run(index);
  const times = createHistogram();
  for (let index = 0; index < count; index += 1) {
    const started = performance.now();
    await run(Math.ceil(count / 10) + index);
    times.record(Math.max(1, Math.round((performance.now() - started) * 1000)));
  }
  return { p50: times.percentile(50), p99: times.percentile(99) };
}

const WORDS =
  'amber basin cedar delta ember fjord grove harbor island jungle kernel lagoon meadow nectar orchid prairie quartz river summit tundra'.split(
    ' ',
  );

/** Name, one word that no other entity has, and a text of some 300 bytes with it. The same in every run. */
export function entity(index) {
  const name = `Topic ${index}`;
  const unique = `zz${index.toString(36)}qx`;
  const words = Array.from(
    { length: 40 },
    (_, place) => WORDS[(index * 7 + place * place * 3) % WORDS.length],
  );
  return { name, unique, text: `${words.join(' ')} ${unique}.` };
}

function rssOf(pid) {
  const pages = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(pages) / 1024);
}
