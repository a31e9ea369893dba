import { EXIT_CODES } from '../../core/exit-codes.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Run } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { type DumpOptions, loadDump } from '../proxy/dump.ts';
import { endpointsOf, uncountedBackends } from '../proxy/dump-parts.ts';
import { indentJson } from '../proxy/json-text.ts';
import { print, table } from '../proxy/print.ts';

interface Options extends DumpOptions {
  readonly output?: 'short' | 'json' | 'yaml';
  readonly all?: boolean;
}

const HEAD = ['TYPE', 'NAME', 'NAMESPACE', 'ENDPOINT', 'HEALTH', 'REQUESTS', 'LATENCY'];

export const run: Run<Options> = async (options, context) => {
  const { value } = await loadDump(options, context);
  const found = endpointsOf(value);
  const endpoints = options.all === true ? found : found.filter(({ requests }) => requests > 0);
  const rows = endpoints.map(({ type, name, namespace, endpoint, health, requests, latencyMs }) => [
    type,
    escapeControls(name),
    escapeControls(namespace),
    escapeControls(endpoint),
    escapeControls(health),
    String(requests),
    requests === 0 ? '' : `${latencyMs.toFixed(2)}ms`,
  ]);
  if (options.output === 'json') await print(context.stdout, indentJson(JSON.stringify(endpoints)));
  else if (options.output === 'yaml') {
    const { yamlOf } = await import('../proxy/yaml-text.ts');
    await print(context.stdout, yamlOf(endpoints));
  } else {
    await print(context.stdout, [table([HEAD, ...rows], displayWidth)]);
    // Explains an empty table, and on a terminal the rows that are left out.
    if (rows.length > 0 && context.stdout.isTTY !== true) return EXIT_CODES.ok.code;
    const hidden = found.length - endpoints.length;
    if (hidden > 0) context.stderr.write(`${hidden} without requests not shown (--all shows them)\n`);
    const others = uncountedBackends(value);
    if (others > 0)
      context.stderr.write(
        `MCP servers and services (${others}) have no row: \`${asCalled('agctl proxy config all', context)}\` shows them, metrics count their requests\n`,
      );
  }
  return EXIT_CODES.ok.code;
};
