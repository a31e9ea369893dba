import { bareName } from './log-directives.ts';

/** What lines of the gateway's log come from: every scope in the code, and `request`, the access log. */
export const LOG_MODULES: readonly string[] = [
  'admin',
  'agctl',
  'agctl::reload',
  'auth',
  'config',
  'llm',
  'llm::guardrail',
  'mcp',
  'mcp::call',
  'mcp::http',
  'mcp::session',
  'mcp::stdio',
  'proxy::gateway',
  'proxy::httpproxy',
  'proxy::policy',
  'proxy::upstream',
  'request',
  'telemetry::trace',
];

/** Whether a level for this target changes anything: it is a module, or the beginning of one. */
export function hasLogModule(target: string): boolean {
  const beginning = bareName(target);
  return LOG_MODULES.some((module) => bareName(module).startsWith(beginning));
}
