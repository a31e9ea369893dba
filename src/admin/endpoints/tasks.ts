import { counted } from '../../core/render/counted.ts';
import { defineEndpoint, shows } from '../endpoint.ts';
import type { Admin } from '../sources.ts';

/**
 * Running tasks as trees of indented lines: `workload` for gateways with their open requests and MCP targets, by worker
 * if there are several, and `admin` for the admin server. Compact JSON.
 */
export const tasks = defineEndpoint({
  path: '/debug/tasks',
  methods: { GET: shows('viewer') },
  async handle(_request, reply, admin) {
    const workload = await Promise.all(
      admin.gateway.processes.map(async (process) => {
        const lines = await process.tasks().catch(() => ['does not answer']);
        return process.name === undefined ? lines : [process.name, ...lines.map((line) => `  ${line}`)];
      }),
    );
    const answer = { admin: adminTasks(admin), workload: workload.flat() };
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
