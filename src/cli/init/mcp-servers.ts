import { entryIn, isRecord, membersOf, textIn } from '../../core/foreign.ts';
import { type Imported, type ImportedEntry, type LeftOut, NotImported } from './imported.ts';
import { hasReference, type PlaceholderContext, UNKNOWN_URL, withReferences } from './placeholders.ts';
import { headerPolicies, isOwnHeader, type TargetHeader } from './target-headers.ts';
import { isSecretName, isSecretVariable, isToken } from './variables.ts';

type Entry = Readonly<Record<string, unknown>>;

const CONFIRMED = 'the client decides which calls it asks its user about';
const TIMES = 'a timeout for calls of all servers is `mcp.policies.timeout`';
const ABOUT = 'it describes the server to users of the client';

/** Why members have no counterpart. */
const REASONS: Readonly<Record<string, string>> = {
  autoApprove: CONFIRMED,
  alwaysAllow: CONFIRMED,
  trust: CONFIRMED,
  timeout: TIMES,
  startup_timeout_sec: TIMES,
  startup_timeout_ms: TIMES,
  tool_timeout_sec: TIMES,
  initTimeout: TIMES,
  description: ABOUT,
  gallery: ABOUT,
  version: ABOUT,
  source: ABOUT,
  id: ABOUT,
  name: ABOUT,
  required: 'the gateway starts without a server that fails',
  tools: 'set by the client; `tools.include` of a target says which there are',
};

const READ: ReadonlySet<string> = new Set([
  ...['command', 'args', 'env', 'environment', 'env_vars', 'cwd', 'url', 'serverUrl', 'httpUrl', 'headers'],
  ...['http_headers', 'env_http_headers', 'bearer_token_env_var'],
  ...['includeTools', 'enabled_tools', 'excludeTools', 'disabled_tools', 'disabledTools'],
  ...['type', 'transport', 'transportType', 'enabled', 'disabled'],
]);

/** What a target has beside what the settings of clients say, by the name of its server. */
export type Finish = ReadonlyMap<string, (target: Entry) => Entry>;

/**
 * Adds the servers of a client's settings to what is imported: `mcpServers` of most clients, `servers` of VS Code,
 * `context_servers` of Zed, `mcp_servers` of Codex. Secrets in them become references to variables. Returns the names of the targets by
 * those of the servers.
 */
export function readServers(
  section: Entry,
  context: PlaceholderContext,
  imported: Imported,
  finish: Finish = new Map(),
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const [name, entry] of Object.entries(section)) {
    const what = `${name} in ${context.source}`;
    try {
      const server = target(name, entry, context);
      const whole = finish.get(name)?.(server) ?? server;
      if (!addTarget(targetName(name), whole, context, imported)) continue;
      names.set(name, imported.targets.at(-1)?.value.name ?? name);
      imported.leftOut.push(...ignoredOf(membersOf(entry), what));
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      imported.leftOut.push({ what, reason: error.message });
    }
  }
  return names;
}

/** A line for each reason. */
function ignoredOf(entry: Entry, what: string): LeftOut[] {
  const keys = Object.keys(entry).filter((key) => !READ.has(key) && entry[key] !== null);
  const byReason = Map.groupBy(keys, (key) => entryIn(REASONS, key) ?? 'no counterpart');
  return [...byReason].map(([reason, each]) => ({
    what: `${each.map((key) => `\`${key}\``).join(', ')} of ${what}`,
    reason,
  }));
}

/** Adds a target, with a number if its name is taken. Returns false if the same server is imported already. */
export function addTarget(
  base: string,
  server: Entry,
  { source }: Pick<PlaceholderContext, 'source'>,
  { targets }: Pick<Imported, 'targets'>,
  more: Pick<ImportedEntry, 'awaited' | 'risks'> = {},
): boolean {
  const value = { name: base, ...server };
  if (targets.some((known) => sameServer(known.value, value))) return false;
  const taken = (each: string): boolean => targets.some((known) => known.value.name === each);
  for (let count = 2; taken(value.name); count += 1) value.name = `${base}-${count}`;
  targets.push({ value, source, ...more });
  return true;
}

/** Whether two targets are the same server, which several clients often have. */
function sameServer({ name: _, ...a }: Entry, { name: __, ...b }: Entry): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The name as targets are named; without dots, which tools of LLM APIs cannot have in their names. */
export function targetName(name: string): string {
  const safe = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return safe === '' ? 'server' : safe.slice(0, 40).replace(/-$/, '');
}

function target(name: string, entry: unknown, context: PlaceholderContext): Entry {
  if (!isRecord(entry)) throw new NotImported('not an object');
  if (entry['disabled'] === true || entry['enabled'] === false) throw new NotImported('disabled there');
  const url = [entry['url'], entry['serverUrl'], entry['httpUrl']].find((each) => typeof each === 'string');
  const { command } = entry;
  const tools = toolView(entry);
  if (command !== undefined) return withTools(local(name, entry, context), tools);
  if (url === undefined)
    throw new NotImported(
      'settings' in entry ? 'an extension of the editor starts it' : 'it has neither a command nor a URL',
    );
  return withTools(remote(name, url, entry, context), tools);
}

const withTools = (server: Entry, tools: Entry | undefined): Entry =>
  tools === undefined ? server : { ...server, tools };

/**
 * Commands that install the server at their first start, which takes longer than a client waits. A process that is started
 * in advance is not ended with a session, so the installation completes.
 */
const DOWNLOADS = /^(?:npx|bunx|uvx|pipx)$/;

/** `command` is a text, a list with the arguments, or, in older settings of Zed, an object. */
function local(name: string, entry: Entry, context: PlaceholderContext): Entry {
  const { command } = entry;
  const whole = isRecord(command) ? { ...entry, ...command } : entry;
  const words = Array.isArray(command) ? command : [isRecord(command) ? command['path'] : command];
  const [cmd, ...more] = texts(words, 'command');
  if (cmd === undefined || cmd === '') throw new NotImported('its command is empty');
  const args = [...more, ...texts(whole['args'] ?? [], 'args')];
  const env = variables(name, whole, context);
  const { cwd } = whole;
  return {
    stdio: {
      cmd: withReferences(cmd, context),
      ...(args.length === 0 ? {} : { args: args.map((_, index) => argument(args, index, name, context)) }),
      ...(Object.keys(env).length === 0 ? {} : { env }),
      ...(typeof cwd === 'string' && cwd !== '' ? { cwd: withReferences(cwd, context) } : {}),
      ...(DOWNLOADS.test(cmd) ? { warm: 1 } : {}),
    },
  };
}

function variables(name: string, entry: Entry, context: PlaceholderContext): Record<string, string> {
  const given = entry['env'] ?? entry['environment'] ?? {};
  if (!isRecord(given)) throw new NotImported('`env` is not an object');
  const passed = Array.isArray(entry['env_vars']) ? texts(entry['env_vars'], 'env_vars') : [];
  return Object.fromEntries([
    ...passed.map((variable) => [variable, withReferences(`\${${variable}}`, context)]),
    ...Object.entries(given)
      .filter(([, value]) => value !== null)
      .map(([variable, value]) => [variable, variableValue(name, variable, scalarText(value), context)]),
  ]);
}

/** A value of TOML may be a date. */
function scalarText(value: unknown): string {
  if (typeof value === 'object' && !(value instanceof Date))
    throw new NotImported('a value of `env` or `headers` is not a text');
  return String(value);
}

function variableValue(owner: string, name: string, value: string, context: PlaceholderContext): string {
  const isLiteral = !hasReference(value) || (!value.includes('${') && !context.expandsBareNames);
  if (!isLiteral || !isSecretVariable(name, value)) return withReferences(value, context);
  return context.variables.reference(name, value, owner, `\`env\` of ${owner} in ${context.source}`);
}

/** An argument, with its secret replaced: that of `--token x`, `--token=x`, `NAME=x`, a header, or a whole URL. */
function argument(
  args: readonly string[],
  index: number,
  owner: string,
  context: PlaceholderContext,
): string {
  const text = args[index] ?? '';
  const before = args[index - 1] ?? '';
  if (text.includes('${')) return withReferences(text, context);
  const from = `\`args\` of ${owner} in ${context.source}`;
  const reference = (name: string, value: string): string =>
    context.variables.reference(name, value, owner, from);
  const [, prefix, option, value] = /^((?:-{1,2})?([\w-]{1,64})=)(.+)$/s.exec(text) ?? [];
  if (
    prefix !== undefined &&
    option !== undefined &&
    value !== undefined &&
    (isSecretName(option) || isToken(value))
  )
    return prefix + reference(option, value);
  const [, header, secret] = /^([\w-]{1,64}:\s*(?:Bearer\s+|Basic\s+)?)(\S.*)$/is.exec(text) ?? [];
  if (
    header !== undefined &&
    secret !== undefined &&
    !/^\w+:\/\//.test(text) &&
    (isSecretName(header.replace(/:.*/s, '')) || isToken(secret))
  )
    return header + reference(header.replace(/:.*/s, ''), secret);
  const isValue = /^--?[\w-]{1,64}$/.test(before) && !text.startsWith('-');
  if (isValue && isSecretName(before.replace(/^-+/, ''))) return reference(before, text);
  return isToken(text) ? reference('ARGUMENT', text) : withReferences(text, context);
}

function remote(name: string, url: string, entry: Entry, context: PlaceholderContext): Entry {
  const policies = headerPolicies(headersOf(name, entry, context));
  const kind = isSse(url, entry) ? 'sse' : 'mcp';
  return {
    [kind]: { host: secretUrl(name, url, context) },
    ...(policies !== undefined && { policies }),
  };
}

/** Whether a server has the older HTTP+SSE transport. Clients that do not ask guess by the path, too. */
function isSse(url: string, entry: Entry): boolean {
  const type = entry['type'] ?? entry['transport'] ?? entry['transportType'];
  if (typeof type === 'string' && /^(?:sse|http|streamable)/i.test(type)) return /^sse$/i.test(type);
  return entry['httpUrl'] === undefined && /\/sse\/?(?:\?|$)/.test(url);
}

/** The URL, with credentials in its query as references. */
function secretUrl(owner: string, url: string, context: PlaceholderContext): string {
  if (/^\w+:\/\/[^/?#]*@/.test(url))
    throw new NotImported('its URL has a user and a password, which targets cannot send');
  const [, address] = /^\$\{(?:env:)?([A-Za-z_]\w*)\}/.exec(url) ?? [];
  if (address !== undefined) context.variables.need(address, context.source, UNKNOWN_URL);
  const [base = '', query] = url.split(/\?(.*)/s);
  if (query === undefined) return withReferences(base, context);
  const pairs = query.split('&').map((pair) => {
    const [name = '', value = ''] = pair.split(/=(.*)/s);
    if (value === '' || value.includes('${') || !(isSecretName(name) || isToken(value)))
      return withReferences(pair, context);
    const from = `the URL of ${owner} in ${context.source}`;
    return `${name}=${context.variables.reference(`${owner}_${name}`, value, owner, from)}`;
  });
  return `${withReferences(base, context)}?${pairs.join('&')}`;
}

/** The headers that a client sends, with secrets as references. */
function headersOf(owner: string, entry: Entry, context: PlaceholderContext): readonly TargetHeader[] {
  const given = entry['headers'] ?? entry['http_headers'] ?? {};
  if (!isRecord(given)) throw new NotImported('`headers` is not an object');
  const variable = entry['bearer_token_env_var'];
  const variables = Object.entries(membersOf(entry['env_http_headers'])).map(([name, each]) => ({
    name,
    value: withReferences(`\${${textIn(each)}}`, context),
  }));
  const headers = Object.entries(given).map(([name, value]) => ({
    name,
    value: headerValue(owner, name, scalarText(value), context),
  }));
  const bearer =
    typeof variable === 'string'
      ? [{ name: 'Authorization', value: `Bearer ${withReferences(`\${${variable}}`, context)}` }]
      : [];
  return [...bearer, ...headers, ...variables].filter(({ name }) => !isOwnHeader(name));
}

function headerValue(owner: string, name: string, text: string, context: PlaceholderContext): string {
  if (hasReference(text)) return withReferences(text, { ...context, expandsBareNames: true });
  const isAuthorization = /^authorization$/i.test(name);
  if (!isAuthorization && !isSecretName(name) && !isToken(text)) return withReferences(text, context);
  const [, scheme = '', secret = text] = /^([\w-]{1,32}\s+)(\S.*)$/s.exec(text) ?? [];
  const preferred = `${owner}_${isAuthorization ? 'token' : name}`;
  const from = `a header of ${owner} in ${context.source}`;
  return scheme + context.variables.reference(preferred, secret, owner, from);
}

function toolView(entry: Entry): Entry | undefined {
  const list = (...keys: readonly string[]): readonly string[] => {
    const value = keys.map((key) => entry[key]).find((each) => Array.isArray(each));
    // `tool(argument)` restricts a tool of Gemini CLI to some arguments; without it, all are allowed.
    return value === undefined ? [] : texts(value, keys[0] ?? '').map((tool) => tool.replace(/\(.*$/, ''));
  };
  const include = list('includeTools', 'enabled_tools');
  const exclude = list('excludeTools', 'disabled_tools', 'disabledTools');
  if (include.length === 0 && exclude.length === 0) return undefined;
  return { ...(include.length > 0 && { include }), ...(exclude.length > 0 && { exclude }) };
}

function texts(value: unknown, key: string): readonly string[] {
  if (!Array.isArray(value) || value.some((each) => typeof each === 'object' || each === undefined))
    throw new NotImported(`\`${key}\` is not a list of texts`);
  return value.map(String);
}
