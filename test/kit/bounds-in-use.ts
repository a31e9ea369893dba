import type { TestGateway } from './gateway.ts';
import type { Json } from './mcp.ts';

/** Current use of the limits of a gateway with an admin server, such as `mcp.sessions`. */
export async function boundsInUse({ admin }: Pick<TestGateway, 'admin'>): Promise<Record<string, number>> {
  const { bounds } = (await (await fetch(`${admin}/memory`)).json()) as Json;
  return Object.fromEntries(bounds.map(({ name, used }: Json) => [name, used]));
}
