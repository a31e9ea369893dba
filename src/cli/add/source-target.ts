import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import type { Place } from '../clients/place.ts';
import { type Imported, type ImportedEntry, nothingImported } from '../init/imported.ts';
import { targetName } from '../init/mcp-servers.ts';
import type { WantedWay } from '../init/server-json/read.ts';
import { importSource, namedSources } from '../init/sources.ts';
import type { Variables } from '../init/variables.ts';

interface Wanted {
  /** Name that the target gets. */
  readonly name: string;
  /** Name of the server in the source. */
  readonly server: string | undefined;
  readonly wanted: WantedWay;
}

/**
 * The one server of a source, as a target with another name, and what there is to say about it.
 *
 * @throws CommandError with exit name `usage` if the source has none or several, `not_ok` if it cannot be imported
 */
export function sourceTarget(
  from: string,
  { name, server, wanted }: Wanted,
  place: Place,
  variables: Variables,
): { readonly target: ImportedEntry; readonly imported: Imported } {
  const sources = namedSources(from, place);
  const imported = nothingImported();
  const isChosen = wanted.package !== undefined || wanted.remote !== undefined;
  for (const source of sources) {
    const { content } = source;
    if ('gateway' in content || 'portkey' in content)
      throw new CommandError(
        'usage',
        `${source.shown} does not describe an MCP server`,
        'expected a server.json, or a file with `mcpServers`',
      );
    if (isChosen && !('registry' in content))
      throw new CommandError(
        'usage',
        `${source.shown} has no packages to choose from`,
        'leave out --package and --remote',
      );
    const isOnly = 'registry' in content && content.registry.length === 1 && server === undefined;
    importSource(source, place, variables, imported, { wanted, ...(isOnly && { name }) });
  }
  const { targets, leftOut } = imported;
  const shown = sources.map((source) => source.shown).join(', ');
  const named =
    server === undefined ? targets : targets.filter(({ value }) => value.name === targetName(server));
  const [target, ...others] = named;
  if (target === undefined) throw notFound(shown, server, imported);
  if (others.length > 0)
    throw new CommandError(
      'usage',
      `${shown} has several servers: ${targets.map(({ value }) => value.name).join(', ')}`,
      'choose one with --server NAME',
    );
  const own = leftOut.filter(({ what }) => targets.length === 1 || what.includes(target.value.name));
  return {
    target: { ...target, value: { ...target.value, name } },
    imported: { ...imported, leftOut: own },
  };
}

function notFound(shown: string, server: string | undefined, { targets, leftOut }: Imported): CommandError {
  const [lost] = leftOut;
  if (server !== undefined && targets.length > 0)
    return new CommandError(
      'usage',
      `${shown} has no server \`${escapeControls(server)}\``,
      `it has ${targets.map(({ value }) => value.name).join(', ')}`,
    );
  if (lost === undefined) return new CommandError('usage', `${shown} has no MCP servers`);
  return new CommandError(
    'not_ok',
    `${escapeControls(lost.what)} cannot be added: ${escapeControls(lost.reason)}`,
  );
}
