import { CommandError } from '../../../core/exit-codes.ts';
import { isRecord, membersOf, stringIn, textIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { type Imported, NotImported } from '../imported.ts';
import { addTarget, targetName } from '../mcp-servers.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import { Variables } from '../variables.ts';
import { type Entry, entriesOf } from './fields.ts';
import { Inputs } from './inputs.ts';
import { packageLabel, packageTarget, registryTypeOf } from './packages.ts';
import { isSse, remoteLabel, remoteTarget } from './remotes.ts';
import { nothingSaid, type Said } from './said.ts';

/** A server as the MCP registry describes it, with what the registry says about its entry. */
interface RegistryEntry {
  readonly server: Entry;
  readonly official: Entry;
}

/** Which of its packages and remotes to use, by the number in the file; a package also by its registry. */
export interface WantedWay {
  readonly package?: string | undefined;
  /** True: the first one. */
  readonly remote?: string | true | undefined;
}

/** What reading needs, and for a single server its name and the way to reach it. */
export interface ServerJsonContext extends Pick<PlaceholderContext, 'source' | 'variables'> {
  readonly name?: string | undefined;
  readonly wanted?: WantedWay | undefined;
}

const OFFICIAL = 'io.modelcontextprotocol.registry/official';

/**
 * The servers of a file in the format of the MCP registry: one as its publisher writes it (`server.json`), as the registry
 * returns it (`{ server, _meta }`), or a list of those. Undefined for another file.
 */
export function serverJsonIn(file: Entry): readonly Entry[] | undefined {
  const list: unknown = file['servers'];
  if (Array.isArray(list)) return list.every(isRecord) && list.some(isServer) ? list : undefined;
  return isServer(file) ? [file] : undefined;
}

function isServer(entry: unknown): boolean {
  const { server } = entryOf(membersOf(entry));
  return (
    Array.isArray(server['packages']) ||
    Array.isArray(server['remotes']) ||
    textIn(server['$schema']).startsWith('https://static.modelcontextprotocol.io/schemas/')
  );
}

function entryOf(entry: Entry): RegistryEntry {
  const server = isRecord(entry['server']) ? entry['server'] : entry;
  return { server, official: membersOf(membersOf(entry['_meta'])[OFFICIAL]) };
}

/** One way to get a server. */
interface Way {
  readonly kind: 'package' | 'remote';
  /** From 1, in the order of the file. */
  readonly number: number;
  /** The registry of a package. */
  readonly registry: string;
  readonly label: string;
  build(inputs: Inputs, owner: string, said: Said): Entry;
}

/**
 * Adds the servers to what is imported, each the first way that can be used (docs/decisions/0076), and notes which ways there
 * are.
 *
 * @throws CommandError with exit name `usage` if there is no way that was asked for
 */
export function readServerJson(
  entries: readonly Entry[],
  context: ServerJsonContext,
  imported: Imported,
): void {
  for (const entry of entries.slice(0, LIMITS.serverJsonItems)) {
    const { server, official } = entryOf(entry);
    const owner = context.name ?? nameOf(server);
    try {
      readServer(server, official, owner, context, imported);
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      imported.leftOut.push({ what: `${owner} in ${context.source}`, reason: error.message });
    }
  }
  if (entries.length > LIMITS.serverJsonItems)
    imported.leftOut.push({
      what: `servers after the first ${LIMITS.serverJsonItems} in ${context.source}`,
      reason: 'too many',
    });
}

function readServer(
  server: Entry,
  official: Entry,
  owner: string,
  context: ServerJsonContext,
  imported: Imported,
): void {
  const status = stringIn(official['status']) ?? stringIn(server['status']);
  if (status === 'deleted') throw new NotImported('the registry has deleted it');
  const ways = waysOf(server);
  const { way, failed } = chosenWay(ways, owner, context);
  const said = nothingSaid();
  const inputs = new Inputs(owner, context.source, context.variables);
  const target = way.build(inputs, owner, said);
  const { awaited } = inputs;
  if (!addTarget(owner, target, context, imported, { awaited, risks: said.risks })) return;
  imported.notes.push(
    `${owner}: ${way.label} was chosen${others(ways, way, failed)}`,
    ...(status === 'deprecated' ? [`${owner}: its publisher has deprecated it`] : []),
    ...said.notes.map((note) => `${owner}: ${note}`),
    ...(inputs.unset.length > 0 ? [`${owner}: optional, not set: ${shortList(inputs.unset)}`] : []),
  );
}

/** `io.github.owner/weather` is `weather`; a name that many have is that of its owner. */
function nameOf(server: Entry): string {
  const name = textIn(server['name']).slice(0, LIMITS.serverJsonText);
  const [space = '', own = name] = name.split(/\/([^/]*)$/);
  const isCommon = /^(?:mcp|server|mcp[-_.]?server|api)$/i.test(own);
  return targetName(isCommon && space !== '' ? (space.split('.').at(-1) ?? own) : own);
}

function waysOf(server: Entry): readonly Way[] {
  const packages = entriesOf(server, 'packages').map(
    (entry, index): Way => ({
      kind: 'package',
      number: index + 1,
      registry: registryTypeOf(entry),
      label: packageLabel(entry),
      build: (inputs, _, said) => packageTarget(entry, inputs, said),
    }),
  );
  const remotes = entriesOf(server, 'remotes').map((entry, index): [boolean, Way] => [
    isSse(entry),
    {
      kind: 'remote',
      number: index + 1,
      registry: '',
      label: remoteLabel(entry),
      build: (inputs, owner, said) => remoteTarget(entry, owner, inputs, said),
    },
  ]);
  // HTTP+SSE is the older transport.
  return [...packages, ...remotes.toSorted(([a], [b]) => Number(a) - Number(b)).map(([, way]) => way)];
}

interface Chosen {
  readonly way: Way;
  /** The ways before it, with the reasons why they cannot be used. */
  readonly failed: ReadonlyMap<Way, string>;
}

function chosenWay(ways: readonly Way[], owner: string, { wanted, source }: ServerJsonContext): Chosen {
  if (ways.length === 0) throw new NotImported('it has neither packages nor remotes');
  const asked = wantedWays(ways, wanted ?? {});
  if (asked.length === 0)
    throw new CommandError(
      'usage',
      `${source} has no such ${wanted?.package === undefined ? 'remote' : 'package'}`,
      `it has ${shortList(ways.map(shown))}`,
    );
  const failed = new Map<Way, string>();
  for (const way of asked) {
    try {
      // Without effect on the variables of the configuration.
      way.build(new Inputs(owner, source, new Variables({})), owner, nothingSaid());
      return { way, failed };
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      failed.set(way, error.message);
    }
  }
  throw new NotImported(reasonsOf(failed));
}

/** Why ways cannot be used: one reason for all that have it, such as bundles for several systems. */
function reasonsOf(failed: ReadonlyMap<Way, string>): string {
  const byReason = new Map<string, Way[]>();
  for (const [way, reason] of failed) byReason.set(reason, [...(byReason.get(reason) ?? []), way]);
  return [...byReason]
    .map(([reason, [first, ...more]]) => {
      const others = more.length === 0 ? '' : ` and ${more.length} more`;
      return `${first === undefined ? '' : shown(first)}${others}: ${reason}`;
    })
    .join('; ');
}

function wantedWays(ways: readonly Way[], wanted: WantedWay): readonly Way[] {
  const { package: name, remote } = wanted;
  if (name !== undefined)
    return ways.filter(
      ({ kind, number, registry }) => kind === 'package' && (String(number) === name || registry === name),
    );
  if (remote === undefined) return ways;
  return ways.filter(
    ({ kind, number }) => kind === 'remote' && (remote === true || String(number) === remote),
  );
}

const shown = ({ kind, number, label }: Way): string => `${kind} ${number} (${label})`;

function others(ways: readonly Way[], chosen: Way, failed: ReadonlyMap<Way, string>): string {
  const rest = ways.filter((way) => way !== chosen && !failed.has(way));
  return [
    ...(rest.length > 0 ? [`; also there: ${shortList(rest.map(shown))}`] : []),
    ...(failed.size > 0 ? [`; cannot be used: ${reasonsOf(failed)}`] : []),
  ].join('');
}

/** Items that a message names. */
const MOST_SHOWN = 10;

function shortList(items: readonly string[]): string {
  const more = items.length - MOST_SHOWN;
  return items.slice(0, MOST_SHOWN).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
