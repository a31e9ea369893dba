import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const PROJECT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');

/** Test files of `npm test`, relative to the project. */
const FILES = globSync('test/**/*.test.ts', { cwd: PROJECT, exclude: ['test/interop/**'] });

/**
 * Files that `npm run test:fast` leaves out although they start no program: those that start PostgreSQL in process, and
 * those that take more than 5 s, or more than 1.5 s and 90 ms for each test, as they wait, repeat or measure. Of each area
 * some stay: `reload`, `budgets`, `endpoints`, `sessions`, `gateway-policies`.
 */
const LONG = [
  'test/adapter/adapter.test.ts',
  'test/adapter/faults.test.ts',
  'test/adapter/memory/docs-renames.test.ts',
  'test/adapter/memory/embed/embedding-queue.test.ts',
  'test/adapter/memory/embed/onnx-embedder.test.ts',
  'test/adapter/memory/embed/remote-embedder.test.ts',
  'test/adapter/memory/http/access.test.ts',
  'test/adapter/memory/http/embedding.test.ts',
  'test/adapter/memory/http/namespaces.test.ts',
  'test/adapter/memory/markdown/chunk.test.ts',
  'test/adapter/memory/migrations.test.ts',
  'test/adapter/memory/postgres/contract.test.ts',
  'test/adapter/memory/search/same-ranking.test.ts',
  'test/adapter/memory/sqlite/erasure.test.ts',
  'test/adapter/namespace-keys.test.ts',
  'test/adapter/server-memory.test.ts',
  'test/admin/config-dump.test.ts',
  'test/admin/faults.test.ts',
  'test/admin/profile.test.ts',
  'test/admin/slow-requests.test.ts',
  'test/admin/state.test.ts',
  'test/cli/check-progress.test.ts',
  'test/cli/config-fmt.test.ts',
  'test/cli/idle-collection.test.ts',
  'test/cli/memory-backup.test.ts',
  'test/cli/memory-data.test.ts',
  'test/cli/memory-model.test.ts',
  'test/core/diagnostics-fuzz.test.ts',
  'test/core/json-members.test.ts',
  'test/core/yaml-hostile.test.ts',
  'test/core/yaml-scalar.test.ts',
  'test/fuzz/llm/answers.test.ts',
  'test/fuzz/llm/requests.test.ts',
  'test/fuzz/llm/streams.test.ts',
  'test/fuzz/mcp/clients.test.ts',
  'test/fuzz/mcp/messages.test.ts',
  'test/fuzz/mcp/responses.test.ts',
  'test/fuzz/mcp/start.test.ts',
  'test/fuzz/services/services.test.ts',
  'test/server/budgets/faults.test.ts',
  'test/server/budgets/running-calls.test.ts',
  'test/server/budgets/store.test.ts',
  'test/server/budgets/virtual-keys.test.ts',
  'test/server/config/one-mistake.test.ts',
  'test/server/database/postgres.test.ts',
  'test/server/database/sqlite.test.ts',
  'test/server/http/access-log.test.ts',
  'test/server/http/body.test.ts',
  'test/server/http/client-closed.test.ts',
  'test/server/http/connection-settings.test.ts',
  'test/server/http/fuzz.test.ts',
  'test/server/http/http2-attacks.test.ts',
  'test/server/http/http2.test.ts',
  'test/server/http/https.test.ts',
  'test/server/http/pipelining.test.ts',
  'test/server/http/upstream-failures.test.ts',
  'test/server/llm/encoded-answers.test.ts',
  'test/server/llm/failover.test.ts',
  'test/server/llm/large-requests.test.ts',
  'test/server/llm/prices.test.ts',
  'test/server/llm/provider-errors.test.ts',
  'test/server/llm/realtime.test.ts',
  'test/server/llm/stream-guard-formats.test.ts',
  'test/server/llm/stream-guard.test.ts',
  'test/server/llm/stream-metering.test.ts',
  'test/server/llm/streams.test.ts',
  'test/server/llm/translation/ai-sdk.test.ts',
  'test/server/llm/translation/events.test.ts',
  'test/server/llm/translation/properties.test.ts',
  'test/server/llm/translation/translated-body.test.ts',
  'test/server/log-payloads.test.ts',
  'test/server/mcp/both-eras.test.ts',
  'test/server/mcp/cancel.test.ts',
  'test/server/mcp/child-limit.test.ts',
  'test/server/mcp/client/legacy-sse.test.ts',
  'test/server/mcp/client/modern/modern-callers.test.ts',
  'test/server/mcp/client/modern/modern-input.test.ts',
  'test/server/mcp/client/stateless.test.ts',
  'test/server/mcp/ended-session.test.ts',
  'test/server/mcp/equal-ids.test.ts',
  'test/server/mcp/failure-mode.test.ts',
  'test/server/mcp/federation/lists.test.ts',
  'test/server/mcp/guardrails/guardrails-input-and-errors.test.ts',
  'test/server/mcp/guardrails/guardrails-remote.test.ts',
  'test/server/mcp/guardrails/guardrails.test.ts',
  'test/server/mcp/json-text.test.ts',
  'test/server/mcp/live.test.ts',
  'test/server/mcp/official-clients-federation.test.ts',
  'test/server/mcp/official-clients.test.ts',
  'test/server/mcp/official-everything-server.test.ts',
  'test/server/mcp/prefix-mode.test.ts',
  'test/server/mcp/restarted-target.test.ts',
  'test/server/mcp/resume-with-sdk.test.ts',
  'test/server/mcp/session/server-requests.test.ts',
  'test/server/mcp/slow-target.test.ts',
  'test/server/mcp/subscription-floods.test.ts',
  'test/server/mcp/targets/http/http-listen.test.ts',
  'test/server/mcp/targets/http/http-refusal.test.ts',
  'test/server/mcp/targets/http/http-resume.test.ts',
  'test/server/mcp/targets/http/http-target.test.ts',
  'test/server/mcp/targets/openapi/calls.test.ts',
  'test/server/mcp/targets/openapi/hostile.test.ts',
  'test/server/mcp/targets/stdio/stdio-both-eras.test.ts',
  'test/server/mcp/targets/stdio/stdio-environment.test.ts',
  'test/server/mcp/targets/stdio/stdio-faults.test.ts',
  'test/server/mcp/targets/stdio/stdio-idle-timeout.test.ts',
  'test/server/mcp/targets/stdio/stdio-messages.test.ts',
  'test/server/mcp/targets/stdio/stdio-shared-eras.test.ts',
  'test/server/mcp/targets/stdio/stdio-shared.test.ts',
  'test/server/mcp/targets/stdio/stdio-warm.test.ts',
  'test/server/mcp/tasks.test.ts',
  'test/server/mcp/tool-pinning/tool-pinning.test.ts',
  'test/server/observe/otlp-export.test.ts',
  'test/server/observe/otlp.test.ts',
  'test/server/observe/trace-golden.test.ts',
  'test/server/observe/trace-limits.test.ts',
  'test/server/observe/trace-subscribers.test.ts',
  'test/server/open-requests.test.ts',
  'test/server/policies/backend-auth-cloud.test.ts',
  'test/server/policies/basic-auth.test.ts',
  'test/server/policies/bounded.test.ts',
  'test/server/policies/ext-authz-bounds.test.ts',
  'test/server/policies/ext-authz-grpc.test.ts',
  'test/server/policies/local-rate-limit.test.ts',
  'test/server/policies/mcp-authentication/differential.test.ts',
  'test/server/policies/mcp-authentication/flow.test.ts',
  'test/server/policies/mcp-authentication/key-faults.test.ts',
  'test/server/policies/mcp-authentication/key-set.test.ts',
  'test/server/policies/mcp-authentication/keys.test.ts',
  'test/server/policies/mcp-authentication/sessions.test.ts',
  'test/server/policies/mcp-authorization.test.ts',
  'test/server/policies/oidc-renewal.test.ts',
  'test/server/policies/remote-rate-limit.test.ts',
  'test/server/record/record.test.ts',
  'test/server/record/stored-postgres.test.ts',
  'test/server/reload/load.test.ts',
  'test/server/static/faults.test.ts',
  'test/server/static/silent-body.test.ts',
  'test/server/static/streaming.test.ts',
  'test/spec/gateway-mcp.test.ts',
];

/**
 * Files that run only with `AGCTL_THOROUGH=1`: they take two minutes of two cores, and test tools of developers (`npm run dev`,
 * `npm run release`, an example) or repeat what others test: conformance with further settings, `agctl top` with dumps of other
 * servers, and the contract of the memory's store in PostgreSQL, which interop `postgres` tests on a real server.
 */
export const THOROUGH = [
  'test/adapter/memory/postgres/contract.test.ts',
  'test/cli/proxy/other-servers.test.ts',
  'test/conformance/conformance.test.ts',
  'test/dev.test.ts',
  'test/library/example-agent.test.ts',
  'test/release.test.ts',
];

/** Files that take longest, longest first: begun last, one of them would run alone at the end. */
export const LONGEST = [
  'test/conformance/conformance.test.ts',
  'test/guides/guides.test.ts',
  'test/cli/memory-serve.test.ts',
  'test/library/package.test.ts',
  'test/guides/readme.test.ts',
  'test/web/memory.test.ts',
  'test/web/memory-browser.test.ts',
  'test/cli/proxy/top-screen.test.ts',
  'test/cli/proxy/trace-screen.test.ts',
  'test/server/workers/worker-faults.test.ts',
  'test/web/admin-keys.test.ts',
  'test/web/admin-config.test.ts',
  'test/web/admin-mcp.test.ts',
  'test/server/mcp/targets/stdio/stdio-both-eras.test.ts',
  'test/adapter/memory/sqlite/faults.test.ts',
  'test/web/admin-audit.test.ts',
  'test/server/mcp/official-clients.test.ts',
  'test/server/mcp/slow-target.test.ts',
  'test/server/mcp/targets/stdio/stdio-unreadable.test.ts',
  'test/web/admin-health.test.ts',
  'test/adapter/memory/sqlite/namespaces.test.ts',
  'test/web/admin-trace.test.ts',
  'test/server/budgets/kill.test.ts',
  'test/server/record/withheld.test.ts',
  'test/server/mcp/targets/stdio/stdio-end.test.ts',
  'test/adapter/memory/embed/models/sources.test.ts',
  'test/cli/memory-reembed.test.ts',
  'test/server/shared/replicas.test.ts',
  'test/adapter/memory/postgres/contract.test.ts',
];

/** What starts browsers, terminals, `agctl` and other programs. MCP servers are started by the gateway under test. */
const STARTS_PROCESSES = /from '(?:node:child_process|playwright-core)'/;

/** Kit files that import `node:child_process` to end processes, not to start them. */
const STARTS_NONE = ['test/kit/children.ts'];

/** MCP servers that the gateway under test starts. */
const STARTS_SERVERS = /\bstdio\b|\bchaos\(/;

/** Files that start programs, or whose gateway does. */
export function programFiles(): string[] {
  return [...FILES.filter((file) => STARTS_SERVERS.test(read(file))), ...processFiles()];
}

/** Files that `npm run test:fast` leaves out. */
export function slowFiles(): string[] {
  return [...processFiles(), ...LONG];
}

function processFiles(): string[] {
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
  return FILES.filter(startsProcesses);
}

/** Files of this folder that a file imports, without those that give it types alone. */
function testImports(file: string, text: string): string[] {
  return [...text.matchAll(/^(?:import|export)(?! type )[^;]*? from '(\.[^']+\.ts)';/gm)]
    .map(([, path]) => normalize(join(dirname(file), path as string)))
    .filter((path) => path.startsWith('test/'));
}
