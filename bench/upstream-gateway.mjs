// The Rust gateway whose configuration agctl reads, if `AGCTL_BENCH_UPSTREAM` names its binary: on one core, with one thread.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, start } from './harness/processes.mjs';
import { stdioServer } from './mcp-case.mjs';

const RULES = { authorization: { rules: ['request.headers["user-agent"] == "bench/1.0"'] } };

const BACKENDS = {
  get: (upstream) => ({ backends: [{ host: upstream }] }),
  chat: (upstream) => ({
    policies: { ...RULES, backendAuth: { key: 'sk-bench' } },
    backends: [{ ai: { name: 'bench', hostOverride: upstream, provider: { openAI: {} } } }],
  }),
  tools: () => ({
    backends: [
      { mcp: { targets: [{ name: 'bench', stdio: { cmd: process.execPath, args: [stdioServer] } }] } },
    ],
  }),
};

/** Starts it for a kind of `BACKENDS`, with the address of the provider or server; undefined without a binary. */
export async function startUpstreamGateway(folder, kind, upstream) {
  const binary = process.env.AGCTL_BENCH_UPSTREAM;
  if (binary === undefined) return undefined;
  const [port, ...own] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const [adminAddr, statsAddr, readinessAddr] = own.map((each) => `127.0.0.1:${each}`);
  const file = join(folder, `upstream-${kind}.yaml`);
  const route = BACKENDS[kind](upstream);
  writeFileSync(
    file,
    JSON.stringify({
      config: { adminAddr, statsAddr, readinessAddr },
      binds: [{ port, listeners: [{ routes: [route] }] }],
    }),
  );
  return start(binary, ['-f', file], { ready: port, env: { WORKER_THREADS: '1' } });
}
