import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { FastifyInstance } from 'fastify';
import type { CallerRules } from '../../adapter/caller.ts';
import { dataHome } from '../../adapter/memory/data-home.ts';
import { embedderFrom } from '../../adapter/memory/embed/from-environment.ts';
import type { Extractor } from '../../adapter/memory/extract/chat-extractor.ts';
import { extractorFrom } from '../../adapter/memory/extract/from-environment.ts';
import { createMemoryApp } from '../../adapter/memory/http/app.ts';
import { type Lifetimes, lifetimesFrom } from '../../adapter/memory/lifetimes.ts';
import { type SiteBase, siteBaseIn } from '../../adapter/memory/markdown/links.ts';
import { createMemories, type Memories } from '../../adapter/memory/memories.ts';
import { openStore } from '../../adapter/memory/open-store.ts';
import { DEFAULT_NAMESPACE } from '../../adapter/namespace.ts';
import type { SearchKind } from '../../adapter/tool.ts';
import { AppError } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import type { Log } from '../../core/log.ts';
import type { Context } from '../context.ts';
import { allowedHostsFrom, apiKeyFrom, asUsage, flag, isLocalHost, namespaceRulesFrom } from './options.ts';
import { listenForOthers } from './others-socket.ts';

export interface BackendOptions {
  readonly data?: string;
  readonly docs?: string;
  readonly siteBase?: string;
  /** False for `--no-watch`. */
  readonly watch?: boolean;
  readonly embedder?: string;
}

/** A backend that does not listen yet. */
export interface OpenBackend {
  readonly app: FastifyInstance;
  readonly memories: Memories;
  /** The main key, for an adapter in this process; undefined if calls need no key. */
  readonly key: string | undefined;
  /** What its search compares. */
  readonly searchKind: SearchKind;
  /** Banner lines that name the store, the documents folder, the embedder and what separates namespaces. */
  readonly lines: readonly string[];
}

/** Another process owns the memory. */
export class MemoryInUseError extends CommandError {}

/** The documents folder of container images (spec, "What the service does", 5). */
const BUNDLED_DOCS = '/app/docs';

/** Opens the store and creates the application, from options and environment. Does not start a sync yet. */
export async function openBackend(
  options: BackendOptions,
  context: Context,
  log: Log,
  host: string,
): Promise<OpenBackend> {
  const { env } = context;
  const rules = namespaceRulesFrom(context, log);
  // With keys of namespaces every call needs a key: without a main key, only an adapter in this process has one.
  const key = apiKeyFrom(context) ?? (rules.namespaceKeys === undefined ? undefined : randomUUID());
  if (key === undefined && !isLocalHost(host)) {
    throw new CommandError(
      'usage',
      `listening on ${host || 'all addresses'} requires a key: otherwise everyone who can reach it could read and write the memory`,
      'set MEMORY_API_KEY to the same value for adapter and backend, set MEMORY_NAMESPACE_KEYS, or listen on 127.0.0.1',
    );
  }
  const databaseUrl = env['MEMORY_DATABASE_URL'] || undefined;
  const dataDir = dataFolder(options, context);
  const shared = sharedSettings(options, context);
  const docsFolder = docsFolderFrom(options, context);
  const siteBase = siteBaseFrom(options, context);
  const watchesDocs =
    options.watch !== false && flag(env['MEMORY_WATCH_DOCS'] || 'true', 'MEMORY_WATCH_DOCS');
  const embedder = await embedderFrom(env, options.embedder).catch((error: unknown) => {
    throw asUsage(error);
  });
  const extractor = extractorOf(context);
  const lifetimes = lifetimesOf(context);
  const indexesChat = flag(env['MEMORY_INDEX_CHAT'], 'MEMORY_INDEX_CHAT');
  const store = await openStore({ dataDir, databaseUrl, log }).catch(async (error: unknown) => {
    await embedder.close();
    if (!(error instanceof AppError)) throw error;
    const { code, message } = error;
    throw code === 'memory_in_use'
      ? new MemoryInUseError('not_ok', message)
      : new CommandError('not_ok', message);
  });
  const memories = createMemories({
    store,
    embedder,
    docsFolder,
    siteBase,
    watchesDocs,
    indexesChat,
    lifetimes,
    extractor,
    log,
  });
  // Only the built-in embedder, which compares words, needs no time.
  const searchKind = embedder.isImmediate ? 'words' : 'meaning';
  const access = { ...rules, key, allowedHosts: allowedHostsFrom(context) };
  const app = await createMemoryApp({ memories, access, log });
  if (store.kind === 'sqlite')
    await listenForOthers(app, dataDir, { pid: process.pid, settings: shared, searchKind }, key, log);
  const where = store.kind === 'sqlite' ? dataDir : 'PostgreSQL (MEMORY_DATABASE_URL)';
  const isDocsReachable =
    rules.namespaceKeys?.has(DEFAULT_NAMESPACE) !== false ||
    [apiKeyFrom(context), env['MEMORY_ADAPTER_KEY'] || undefined].some((each) => each !== undefined);
  const docs =
    docsFolder === undefined || isDocsReachable
      ? (docsFolder ?? 'none')
      : `${docsFolder} (of the namespace \`default\`, which no key reaches: add \`default: KEY\` to MEMORY_NAMESPACE_KEYS)`;
  const lines = [
    `data      ${where}`,
    `docs      ${docs}`,
    `embedder  ${embedder.isImmediate ? 'builtin, which compares words' : `${embedder.id}, which compares meaning`}`,
    `keys      ${keysText(rules)}`,
    ...extractionLine(context, indexesChat),
  ];
  return { app, memories, key, searchKind, lines };
}

/** Whether a caller gets a namespace by its key, or chooses one. */
function keysText({ namespaceKeys, requiresNamespace }: Omit<CallerRules, 'key'>): string {
  if (namespaceKeys !== undefined) return 'each namespace has its own (MEMORY_NAMESPACE_KEYS)';
  if (requiresNamespace === true) return 'none of namespaces: each call must name one (MEMORY_NAMESPACES)';
  return 'none of namespaces: a call may name any';
}

/** That texts are sent to a model, and which. */
function extractionLine({ env }: Context, indexesChat: boolean): string[] {
  const model = env['MEMORY_EXTRACTION_MODEL'];
  if (!env['MEMORY_EXTRACTION_URL'] || !model) return [];
  const read = indexesChat ? 'documents and turns' : 'documents; MEMORY_INDEX_CHAT=true adds turns';
  return [`extraction  by ${model}, of ${read}`];
}

/** `MEMORY_EXTRACTION_URL` and those beside it. */
function extractorOf({ env }: Context): Extractor | undefined {
  try {
    return extractorFrom(env);
  } catch (error) {
    throw asUsage(error);
  }
}

/** `MEMORY_TTL`. */
function lifetimesOf({ env }: Context): Lifetimes {
  try {
    return lifetimesFrom(env['MEMORY_TTL']);
  } catch (error) {
    throw asUsage(error);
  }
}

/** Variables that decide what a memory stores and finds, besides those that have an option. */
const DECISIVE = [
  ...['EMBEDDINGS_URL', 'EMBEDDING_MODEL', 'EMBEDDING_DIMENSIONS', 'EMBEDDING_TRUNCATE'],
  ...['EMBEDDING_SCORE_PIVOT', 'MEMORY_INDEX_CHAT', 'MEMORY_TTL'],
  ...['MEMORY_EXTRACTION_URL', 'MEMORY_EXTRACTION_MODEL'],
] as const;

/** What processes that share a memory must agree on, by the name of the option or variable. */
export function sharedSettings(options: BackendOptions, context: Context): Record<string, string> {
  const { env } = context;
  const settings: Record<string, string | undefined> = {
    '--docs': docsFolderFrom(options, context),
    '--site-base': options.siteBase ?? env['MEMORY_SITE_BASE'],
    '--embedder': options.embedder ?? (env['MEMORY_EMBEDDER'] || 'builtin'),
    ...Object.fromEntries(DECISIVE.map((name) => [name, env[name]])),
  };
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]) => (value ? [[name, value] as const] : [])),
  );
}

/** A folder that does not depend on the working directory. */
export function dataFolder({ data }: BackendOptions, { env, cwd }: Context): string {
  const set = data ?? (env['MEMORY_DATA_DIR'] || undefined);
  if (set !== undefined) return resolve(cwd, set);
  return join(dataHome(env), 'memory');
}

/**
 * The folder that was named, else the bundled one if it exists. A folder named by the variable may appear later, for
 * example as a volume; one given as an option must exist.
 */
function docsFolderFrom({ docs }: BackendOptions, { env, cwd }: Context): string | undefined {
  if (docs !== undefined && !isFolder(resolve(cwd, docs)))
    throw new CommandError('usage', `--docs: no such folder: ${resolve(cwd, docs)}`);
  const set = docs ?? (env['MEMORY_DOCS_DIR'] || undefined);
  if (set !== undefined) return resolve(cwd, set);
  return existsSync(BUNDLED_DOCS) ? BUNDLED_DOCS : undefined;
}

/** Where the docs folder is on its site. */
function siteBaseFrom({ siteBase }: BackendOptions, { env }: Context): SiteBase | undefined {
  const set = siteBase ?? (env['MEMORY_SITE_BASE'] || undefined);
  if (set === undefined) return undefined;
  const base = siteBaseIn(set);
  if (base !== undefined) return base;
  throw new CommandError(
    'usage',
    `${siteBase === undefined ? 'MEMORY_SITE_BASE' : '--site-base'}: expected an address such as https://example.com/docs, or a path such as /docs`,
  );
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
