import { isRecord } from '../../../core/foreign.ts';
import { isBundleName } from '../../../server/mcp/bundles/bundle-config.ts';
import type { Imported } from '../imported.ts';
import { readServers } from '../mcp-servers.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import type { Lost } from './lost.ts';
import { clientServers } from './mcp-credentials.ts';

/** Clients of LiteLLM choose servers with it. It has no effect here, so that a client would have the tools of all of them. */
const CHOICE = 'x-mcp-servers';

/** Adds `mcp_servers`, each also at `/mcp/NAME`, where clients of LiteLLM have it alone. */
export function addServers(
  servers: unknown,
  context: PlaceholderContext,
  lost: Lost,
  imported: Imported,
): void {
  if (!isRecord(servers)) return;
  const { servers: given, finish } = clientServers(servers, context, lost);
  const names = readServers(given, context, imported, finish);
  for (const [name, target] of names) {
    if (isBundleName(name)) imported.bundles.push({ name, targets: [target] });
    else
      lost.add(`/mcp/${name}`, 'no path can have this name: `mcp.bundles` gives the server one', {
        owner: name,
      });
    if (name !== target)
      imported.notes.push(
        `${name} of ${context.source} is the target ${target}, because names of targets have no \`_\``,
      );
  }
  const [example] = names.values();
  if (example === undefined) return;
  if (names.size > 1)
    imported.notes.push(
      `names of tools begin with that of their target and \`_\`, as in \`${example}_TOOL\`, not with \`-\``,
    );
  imported.mcpPolicies['authorization'] = { rules: [{ deny: `"${CHOICE}" in request.headers` }] };
  imported.notes.push(
    `requests with the header \`${CHOICE}\` are refused (403): \`/mcp/NAME\` has one server alone, and \`mcp.bundles\` several`,
  );
}
