import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const PROJECT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');

/** Test files of `npm test`, relative to the project. */
const FILES = globSync('test/**/*.test.ts', { cwd: PROJECT, exclude: ['test/interop/**'] });

/** Files that take seconds because they wait, repeat or measure. `npm run test:fast` leaves them out. */
const LONG = [
  'test/adapter/adapter.test.ts',
  'test/adapter/memory/markdown/chunk.test.ts',
  'test/adapter/memory/postgres/contract.test.ts',
  'test/admin/config-dump.test.ts',
  'test/admin/faults.test.ts',
  'test/admin/profile.test.ts',
  'test/admin/state.test.ts',
  'test/cli/check-progress.test.ts',
  'test/core/diagnostics-fuzz.test.ts',
  'test/core/json-members.test.ts',
  'test/core/yaml-hostile.test.ts',
  'test/core/yaml-scalar.test.ts',
  'test/server/config/one-mistake.test.ts',
  'test/server/http/body.test.ts',
  'test/server/http/fuzz.test.ts',
  'test/server/llm/encoded-answers.test.ts',
  'test/server/llm/streams.test.ts',
  'test/server/mcp/cancel.test.ts',
  'test/server/mcp/child-limit.test.ts',
  'test/server/mcp/json-text.test.ts',
  'test/server/mcp/lists.test.ts',
  'test/server/mcp/openapi/hostile.test.ts',
  'test/server/mcp/official-clients-federation.test.ts',
  'test/server/mcp/official-clients.test.ts',
  'test/server/mcp/official-everything-server.test.ts',
  'test/server/mcp/resume-with-sdk.test.ts',
  'test/server/mcp/server-requests.test.ts',
  'test/server/mcp/slow-target.test.ts',
  'test/server/mcp/stdio-faults.test.ts',
  'test/server/mcp/stdio-messages.test.ts',
  'test/server/mcp/stdio-shared-eras.test.ts',
  'test/server/mcp/stdio-shared.test.ts',
  'test/server/open-requests.test.ts',
  'test/server/policies/bounded.test.ts',
  'test/server/policies/mcp-authentication/differential.test.ts',
  'test/server/policies/mcp-authentication/key-set.test.ts',
  'test/server/reload/load.test.ts',
  'test/server/static/faults.test.ts',
  'test/server/static/silent-body.test.ts',
  'test/server/static/streaming.test.ts',
  'test/spec/gateway-mcp.test.ts',
];

/** Files that take longest, longest first: begun last, one of them would run alone at the end. */
export const LONGEST = [
  'test/conformance/conformance.test.ts',
  'test/cli/proxy/trace-screen.test.ts',
  'test/web/memory.test.ts',
  'test/server/mcp/session-leaks.test.ts',
  'test/server/static/faults.test.ts',
  'test/server/mcp/official-clients.test.ts',
  'test/server/reload/load.test.ts',
  'test/server/mcp/slow-target.test.ts',
  'test/web/admin.test.ts',
  'test/server/reload/watch.test.ts',
  'test/adapter/memory/kill.test.ts',
  'test/server/observe/otlp-stop.test.ts',
  'test/server/mcp/stdio-end.test.ts',
  'test/web/memory-replay.test.ts',
  'test/web/admin-trace.test.ts',
  'test/cli/serve-admin.test.ts',
  'test/cli/memory-serve.test.ts',
  'test/cli/memory-network.test.ts',
  'test/cli/serve.test.ts',
  'test/server/mcp/stdio-shared.test.ts',
  'test/adapter/memory/postgres/contract.test.ts',
];

/** What starts browsers, terminals, `agctl` and other programs. MCP servers are started by the gateway under test. */
const STARTS_PROCESSES = /from '(?:node:child_process|playwright-core)'/;

/** Kit files that import `node:child_process` to end processes, not to start them. */
const STARTS_NONE = ['test/kit/children.ts'];

/** Files that `npm run test:fast` leaves out. */
export function slowFiles(): string[] {
  const starts = new Map<string, boolean>();
  const startsProcesses = (file: string): boolean => {
    const known = starts.get(file);
    if (known !== undefined) return known;
    starts.set(file, false);
    const text = read(file);
    const found =
      (STARTS_PROCESSES.test(text) && !STARTS_NONE.includes(file)) ||
      testImports(file, text).some(startsProcesses);
    starts.set(file, found);
    return found;
  };
  return [...FILES.filter(startsProcesses), ...LONG];
}

/** Files of this folder that a file imports, without those that give it types alone. */
function testImports(file: string, text: string): string[] {
  return [...text.matchAll(/^(?:import|export)(?! type )[^;]*? from '(\.[^']+\.ts)';/gm)]
    .map(([, path]) => normalize(join(dirname(file), path as string)))
    .filter((path) => path.startsWith('test/'));
}
