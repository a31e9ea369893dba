// The workloads of `bench scale`, each with the configuration of its gateway.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../harness/processes.mjs';
import { GET, gatewayConfig, POLICY_NAMES } from '../http-cases.mjs';
import { llmConfig, requestOf, WORKLOADS } from '../llm-cases.mjs';
import { mcpConfig } from '../mcp-case.mjs';
import { startSessions } from './sessions.mjs';
import { wrk } from './wrk.mjs';

/**
 * `config` gets the address of nginx. `generator` resolves to `{ run, pid }` for a gateway: `run(seconds)` resolves to
 * `{ completed, rate, p99 }`, and `pid` is the process of a generator that outlives a run.
 */
export const CASES = {
  http: {
    what: 'GET through a `host` backend, 600-byte reply',
    config: (upstream) => gatewayConfig(upstream, []),
    generator: getRequests,
  },
  policies: {
    what: 'the same GET through ten policies, among them API key, CEL rules, CORS and a rate limit',
    config: (upstream) => gatewayConfig(upstream, POLICY_NAMES),
    generator: getRequests,
  },
  llm: {
    what: 'chat completion, not streamed',
    config: llmConfig,
    generator: ({ gateway, connections, folder }) => {
      const { headers, body } = requestOf(WORKLOADS.small);
      const bodyFile = join(folder, 'chat.json');
      writeFileSync(bodyFile, body);
      const load = { url: `${gateway.origin}/v1/chat/completions`, headers, bodyFile, connections };
      return { run: (seconds) => wrk(load, seconds) };
    },
  },
  mcp: {
    what: 'tools/call over stdio, each session on its own connection',
    config: () => mcpConfig({ cmd: 'perl', args: [join(root, 'bench/peers/stdio-server.pl')] }),
    generator: ({ gateway, sessions }) => startSessions(`${gateway.origin}/mcp`, sessions),
  },
};

function getRequests({ gateway, connections }) {
  const load = { url: `${gateway.origin}/v1/items`, headers: GET.headers, connections };
  return { run: (seconds) => wrk(load, seconds) };
}
