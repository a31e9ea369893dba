import { Document, isMap, isScalar, isSeq, Scalar, visit } from 'yaml';
import { escapeControls } from '../../core/log.ts';
import type { Imported, ImportedEntry } from './imported.ts';

/** What a new configuration is made of. */
export interface Composition {
  readonly imported: Imported;
  readonly port: number;
  /** Path or URL of the JSON Schema, for editors; undefined if none is installed at a lasting place. */
  readonly schema: string | undefined;
  /** Whether the models are only the echo provider, which needs no key. */
  readonly isEcho: boolean;
  /** How the user calls this program. */
  readonly agctl: string;
}

const DATABASE = 'sqlite://./agctl.db';

/** Whether what is imported has a policy that keeps sums. */
export const needsDatabase = ({ policies }: Imported): boolean => 'budgets' in policies;

/** Writes a configuration: one gateway on this machine alone, with the MCP servers and models that there are. */
export function composeConfig({ imported, port, schema, isEcho, agctl }: Composition): string {
  const { targets, models, virtualModels, clientKeys, prices } = imported;
  const hasDatabase = needsDatabase(imported);
  const authentication =
    clientKeys.length > 0
      ? {
          apiKey: {
            mode: 'strict',
            keys: clientKeys.map((key) => ({ key })),
            ...(hasDatabase && { virtualKeys: {} }),
          },
        }
      : undefined;
  const policies = { ...authentication, ...imported.policies };
  const mcpPolicies = { ...authentication, ...imported.mcpPolicies };
  const bundles = imported.bundles.filter((bundle) =>
    bundle.targets.every((name) => targets.some(({ value }) => value.name === name)),
  );
  const values = (entries: readonly ImportedEntry[]): unknown[] => entries.map(({ value }) => value);
  const content = {
    gateways: { default: { port, address: '127.0.0.1' } },
    ...(targets.length > 0 && {
      mcp: {
        ...(Object.keys(mcpPolicies).length > 0 && { policies: mcpPolicies }),
        targets: values(targets),
        ...(bundles.length > 0 && { bundles }),
      },
    }),
    ...(models.length > 0 && {
      llm: {
        ...(Object.keys(policies).length > 0 && { policies }),
        models: values(models),
        ...(virtualModels.length > 0 && { virtualModels: values(virtualModels) }),
      },
    }),
    config: {
      statsAddr: 'localhost:15020',
      readinessAddr: 'localhost:15021',
      ...(hasDatabase && { database: { url: DATABASE } }),
      ...(prices.length > 0 && { modelCatalog: prices.map((providers) => ({ inline: { providers } })) }),
    },
  };
  // Equal parts are written out: people change one of them.
  const document = new Document(content, { aliasDuplicateObjects: false });
  document.commentBefore = [
    ...(schema === undefined ? [] : [` yaml-language-server: $schema=${schema}`]),
    ` Written by \`agctl init\`. \`${agctl} config explain KEY\` describes any key; changes take effect while it is served.`,
  ].join('\n');
  const url = `http://127.0.0.1:${port}`;
  commentKey(
    document,
    ['gateways', 'default', 'address'],
    ' Clients on this machine only. Before removing it, add a policy that authenticates callers.',
  );
  commentKey(document, ['mcp'], ` MCP clients connect to ${url}/mcp: \`${agctl} connect\` sets them up.`);
  commentKey(
    document,
    ['llm'],
    ` Clients of the OpenAI, Anthropic and Gemini APIs connect to ${url}/v1.${isEcho ? '\n `echo` returns the last message. A real model: { name: gpt-*, provider: oaiCompat, params: { apiKey: $OPENAI_API_KEY } }' : ''}`,
  );
  commentEntries(document, ['mcp', 'targets'], targets);
  commentEntries(document, ['llm', 'models'], models);
  commentKey(
    document,
    ['config', 'statsAddr'],
    ' Metrics and readiness are for this machine only, too. In a container, remove both keys.',
  );
  const config = document.get('config', true);
  if (isMap(config) && !hasDatabase)
    config.comment = [
      ` \`${agctl} usage\`, \`${agctl} keys\` and the page Conversations need a database, which is opened at startup:`,
      ` database: { url: "${DATABASE}" }`,
      ...(authentication === undefined
        ? []
        : [' Keys of `agctl keys create` also need `virtualKeys: {}` in each `apiKey` above.']),
    ].join('\n');
  for (const key of ['mcp', 'llm', 'config']) spaceBefore(document, key);
  quoteReferences(document);
  return document.toString({ lineWidth: 0 });
}

/** Puts texts with references in quotes: the value of a variable may look like a number, or be empty. */
export function quoteReferences(document: Document): void {
  visit(document, {
    Scalar(key, node) {
      if (key !== 'key' && typeof node.value === 'string' && /\$\{?[A-Za-z_]/.test(node.value))
        node.type = 'QUOTE_DOUBLE';
    },
  });
}

function pairAt(document: Document, path: readonly string[]): { key: unknown; value: unknown } | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  return isMap(parent)
    ? parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1))
    : undefined;
}

function commentKey(document: Document, path: readonly string[], text: string): void {
  const key = pairAt(document, path)?.key;
  if (key instanceof Scalar) key.commentBefore = text;
}

function spaceBefore(document: Document, key: string): void {
  const node = pairAt(document, [key])?.key;
  if (node instanceof Scalar) node.spaceBefore = true;
}

/** Names the file that entries come from, above the first of them, and explains `warm` once. */
function commentEntries(
  document: Document,
  path: readonly string[],
  entries: readonly ImportedEntry[],
): void {
  const list = document.getIn(path, true);
  if (!isSeq(list)) return;
  let isWarmExplained = false;
  for (const [index, { source }] of entries.entries()) {
    const node = list.items[index];
    const warm = isMap(node) ? node.getIn(['stdio', 'warm'], true) : undefined;
    if (isScalar(warm) && !isWarmExplained) {
      warm.comment = ' one process is started in advance, because the command takes seconds';
      isWarmExplained = true;
    }
    if (isMap(node) && source !== '' && source !== entries[index - 1]?.source)
      node.commentBefore = ` From ${escapeControls(source)}`;
    const args = isMap(node) ? node.getIn(['stdio', 'args'], true) : undefined;
    if (isSeq(args)) args.flow = true;
  }
}
