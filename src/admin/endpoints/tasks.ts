import { LIMITS } from '../../core/limits.ts';
import { counted } from '../../core/render/counted.ts';
import { defineEndpoint } from '../endpoint.ts';
import type { Admin } from '../sources.ts';

/**
 * Running tasks as trees of indented lines: `workload` for gateways with their open requests and MCP targets, `admin`
 * for the admin server. Compact JSON.
 */
export const tasks = defineEndpoint({
  path: '/debug/tasks',
  methods: ['GET'],
  handle(_request, reply, admin) {
    const answer = { admin: adminTasks(admin), workload: workloadTasks(admin) };
    return reply.type('application/json').send(JSON.stringify(admin.redactor().value(answer)));
  },
});

function adminTasks({ streams }: Admin): string[] {
  const resources = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo()) resources.set(name, (resources.get(name) ?? 0) + 1);
  return [
    `admin server: ${counted(streams.size, 'stream')}`,
    ...[...resources].sort().map(([name, count]) => `  ${name}: ${count}`),
  ];
}

function workloadTasks({ gateway, served }: Admin): string[] {
  const now = performance.now();
  const open = [...gateway.openRequests];
  const listed = open.slice(0, LIMITS.listedTasks);
  const lines: string[] = [];
  for (const { gateway: each, port } of gateway.listeners) {
    const { name } = each.plan;
    lines.push(`gateway ${name} on port ${port}`);
    for (const ctx of listed.filter(({ listener }) => listener === name)) {
      const to = ctx.endpoint === undefined ? '' : ` to ${ctx.endpoint}`;
      const age = Math.round(now - ctx.timings.started);
      lines.push(
        `  ${ctx.method} ${ctx.path} from ${ctx.client.address}, route ${ctx.route ?? '-'}${to}, for ${age} ms`,
      );
    }
  }
  if (open.length > listed.length) lines.push(`and ${counted(open.length - listed.length, 'more request')}`);
  const { inspection } = served().runtime;
  for (const place of inspection.backendPaths) {
    const { sessions, targets = [] } = inspection.backend(place);
    if (sessions === undefined) continue;
    lines.push(`mcp backend ${place}: ${counted(sessions, 'session')}`);
    for (const { name, state: how, connections, problem } of targets)
      lines.push(
        `  target ${name}: ${how}, ${counted(connections, 'connection')}${problem === undefined ? '' : `: ${problem}`}`,
      );
  }
  return lines;
}
