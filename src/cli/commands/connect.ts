import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { ClientSettings } from '../../core/clients/client.ts';
import { llmClients } from '../../core/clients/llm-clients.ts';
import { mcpClients } from '../../core/clients/mcp-clients.ts';
import { settingText } from '../../core/clients/setting-text.ts';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { replaceFile } from '../../core/replace-file.ts';
import { nearest } from '../../core/suggest.ts';
import { readConfigFile } from '../../server/config/load.ts';
import { filesOf, type Place } from '../clients/place.ts';
import { configFileOf } from '../config-file.ts';
import { type Setting, withoutSetting, withSetting } from '../connect/change.ts';
import {
  type Endpoint,
  endpointsOfConfig,
  endpointsOfDump,
  type Kind,
  keyVariableOf,
} from '../connect/endpoint.ts';
import { loadForReading, PLACEHOLDER } from '../connect/load-for-reading.ts';
import { shownDiff } from '../connect/shown-diff.ts';
import type { Context, Run } from '../context.ts';
import { forConfig } from '../env-file.ts';
import { shownPath } from '../init/sources.ts';
import type { AdminOptions } from '../proxy/address.ts';
import { loadDump } from '../proxy/dump.ts';

interface Options extends AdminOptions {
  readonly operands?: readonly string[];
  readonly file?: string;
  readonly url?: string;
  readonly bundle?: string;
  readonly name?: string;
  readonly keyVariable?: string;
  readonly settings?: string;
  readonly write?: boolean;
  readonly remove?: boolean;
  readonly llm?: boolean;
  readonly model?: string;
}

export const run: Run<Options> = async (options, context) => {
  const client = clientOf(options);
  const place: Place = {
    platform: process.platform,
    home: context.env['HOME'] || homedir(),
    cwd: context.cwd,
    env: context.env,
  };
  const name = options.name ?? options.bundle ?? 'agctl';
  if (!/^[\w-]{1,64}$/.test(name))
    throw new CommandError('usage', '--name: expected letters, digits, `_` and `-`');
  const settings =
    options.settings === undefined
      ? (filesOf(client, place)[0] ?? '')
      : resolve(context.cwd, options.settings);
  const endpoint = options.remove ? NOWHERE : await endpointOf(options, context);
  const keyVariable = options.keyVariable ?? keyVariableOf(endpoint);
  const model = options.llm ? (options.model ?? modelFor(client, endpoint.models)) : undefined;
  const setting: Setting = {
    client,
    name,
    endpoint: { url: endpoint.url, keyVariable, model },
  };
  const shown = shownPath(settings, place);
  if (options.write || options.remove) {
    change({ setting, settings, shown, options, context });
  } else {
    context.stderr.write(`# ${client.title}: ${shown}, or add --write\n`);
    context.stdout.write(`${settingText(client, setting.endpoint, name)}\n`);
  }
  if (!options.remove) {
    context.stderr.write(hints(client, endpoint, keyVariable));
    if (model !== undefined && options.model === undefined && endpoint.models.length > 1)
      context.stderr.write(`# model ${escapeControls(model)}; for another one use --model NAME\n`);
  }
  return EXIT_CODES.ok.code;
};

const NOWHERE: Endpoint = { url: '', policies: [], keyVariable: undefined, models: [], bundles: [] };

/**
 * The model that a client asks for: one of those that it is made for, otherwise the first. Undefined if it may ask for its own, by the
 * names that it knows.
 */
function modelFor({ family }: ClientSettings, models: readonly string[]): string | undefined {
  const isName = (name: string): boolean => !name.includes('*');
  const own = models.filter((name) => family?.test(name) === true);
  return own.length > 0 ? own.find(isName) : models.find(isName);
}

function clientOf({ operands: [name] = [], llm = false, model }: Options): ClientSettings {
  if (model !== undefined && !llm)
    throw new CommandError('usage', '--model goes with --llm', 'MCP clients choose no model');
  const clients: readonly ClientSettings[] = llm ? llmClients : mcpClients;
  const keys = clients.map(({ key }) => key);
  const client = clients.find(({ key }) => key === name);
  if (client !== undefined) return client;
  if (llm && mcpClients.some(({ key }) => key === name))
    throw new CommandError(
      'usage',
      `--llm: ${escapeControls(name ?? '')} has no documented setting for the address of its models`,
      `clients: ${keys.join(', ')}`,
    );
  const near = name === undefined ? undefined : (clientsWith(name, keys) ?? nearest(name, keys));
  throw new CommandError(
    'usage',
    name === undefined
      ? 'which client?'
      : `unknown client \`${escapeControls(name)}\`${near === undefined ? '' : `, did you mean ${near}?`}`,
    `clients: ${keys.join(', ')}`,
  );
}

/** The clients whose names contain a part of at least three letters, such as `code`; undefined if there are none. */
function clientsWith(part: string, keys: readonly string[]): string | undefined {
  const found = part.length < 3 ? [] : keys.filter((key) => key.includes(part.toLowerCase()));
  return found.length === 0 ? undefined : found.join(' or ');
}

/** The endpoint of `--url`, of a running gateway, or of the configuration. @throws CommandError if there is none */
async function endpointOf(options: Options, context: Context): Promise<Endpoint> {
  const kind: Kind = options.llm ? 'llm' : 'mcp';
  if (options.bundle !== undefined) return bundleOf(options.bundle, options, context);
  if (options.url !== undefined) {
    const url = checkedUrl(options.url);
    return { ...(endpointAt(url, kind, options, context) ?? NOWHERE), url };
  }
  const isRunning = options.local || options.admin !== undefined || options.proxyAdminPort !== undefined;
  if (isRunning && options.file !== undefined)
    throw new CommandError(
      'usage',
      '-f and --local or --admin name two different gateways',
      'use one of them',
    );
  const endpoints = isRunning
    ? endpointsOfDump((await loadDump(withoutFile(options), context)).value, kind)
    : ofFile(configFileOf(options.file, context), context, kind);
  const [first, ...others] = endpoints;
  if (first === undefined)
    throw kind === 'mcp'
      ? new CommandError(
          'not_ok',
          'the gateway has no MCP endpoint',
          'add `mcp: { targets: [ … ] }`, or name an endpoint with --url; --llm sets up the models of the gateway',
        )
      : new CommandError(
          'not_ok',
          'the gateway has no models',
          'add `llm: { models: [ … ] }`, or name a base URL with --url',
        );
  const more = [...new Set(others.map(({ url }) => url))].filter((url) => url !== first.url);
  if (more.length > 0)
    context.stderr.write(`# endpoint ${first.url}; for another one use --url: ${more.join(', ')}\n`);
  return first;
}

/** The endpoint of a bundle of the configuration. @throws CommandError if there is none, or if other options contradict it */
function bundleOf(bundle: string, options: Options, context: Context): Endpoint {
  const { llm, url, local, admin, proxyAdminPort, file } = options;
  if (llm || local || [url, admin, proxyAdminPort].some((other) => other !== undefined))
    throw new CommandError(
      'usage',
      '--bundle names a bundle of the configuration',
      'leave out --llm, --url, --local and --admin; --url takes the whole path of a bundle',
    );
  const endpoints = ofFile(configFileOf(file, context), context, 'mcp');
  const endpoint = endpoints.find(({ bundles }) => bundles.includes(bundle));
  if (endpoint !== undefined) return { ...endpoint, url: `${endpoint.url}/${bundle}` };
  const names = endpoints.flatMap(({ bundles }) => bundles);
  throw new CommandError(
    'usage',
    `unknown bundle \`${escapeControls(bundle)}\``,
    names.length === 0 ? 'the configuration has no `mcp.bundles`' : `bundles: ${names.join(', ')}`,
  );
}

/** `-f` of a dump is a dump, not a configuration. */
const withoutFile = ({ local, admin, proxyAdminPort }: Options): AdminOptions => ({
  ...(local === undefined ? {} : { local }),
  ...(admin === undefined ? {} : { admin }),
  ...(proxyAdminPort === undefined ? {} : { proxyAdminPort }),
});

function ofFile(file: string, given: Context, kind: Kind): readonly Endpoint[] {
  const context = forConfig(given, file);
  const { loaded, unset } = loadForReading(readConfigFile(file), file, context.env);
  const endpoints = endpointsOfConfig(loaded, kind);
  // Keys are never read here; the setting names their variable.
  if (endpoints.some(({ url }) => url.includes(PLACEHOLDER)))
    context.stderr.write(`# the address depends on variables that are not set here: ${unset.join(', ')}\n`);
  return endpoints;
}

/** The endpoint of the configuration that a URL leads to, which says whether clients need a key; undefined if there is none. */
function endpointAt(url: string, kind: Kind, { file }: Options, given: Context): Endpoint | undefined {
  try {
    const path = configFileOf(file, given);
    const { loaded } = loadForReading(readConfigFile(path), path, forConfig(given, path).env);
    return endpointsOfConfig(loaded, kind).find((endpoint) => leadsTo(url, endpoint.url));
  } catch (error) {
    if (error instanceof CommandError && file === undefined) return undefined;
    throw error;
  }
}

/** Whether a URL is that of an endpoint, or below it. Names of this machine are the same. */
function leadsTo(url: string, endpoint: string): boolean {
  const [wanted, known] = [url, endpoint].map((each) =>
    each.replace(/^(https?:\/\/)(?:localhost|\[::1\])(?=[:/]|$)/, '$1127.0.0.1').replace(/\/$/, ''),
  );
  return wanted === known || wanted?.startsWith(`${known}/`) === true;
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '')
    return text;
  throw new CommandError(
    'usage',
    '--url: expected an http or https URL without credentials',
    'such as http://127.0.0.1:3000/mcp',
  );
}

interface Change {
  readonly setting: Setting;
  /** Path of the settings file. */
  readonly settings: string;
  readonly shown: string;
  readonly options: Options;
  readonly context: Context;
}

/** Shows the change of the settings file, and makes it with `--write`, after a copy of the file. */
function change({ setting, settings, shown, options, context }: Change): void {
  const before = existsSync(settings) ? read(settings, shown) : '';
  let after: string;
  try {
    after = options.remove ? withoutSetting(before, setting) : withSetting(before, setting);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      'not_ok',
      `${shown} was not changed: ${messageOf(error)}`,
      'correct the file, or change it by hand',
    );
  }
  if (after === before) {
    context.stderr.write(`${shown}: nothing to change\n`);
    return;
  }
  context.stdout.write(shownDiff(shown, before, after));
  if (!options.write) {
    context.stderr.write('not written: add --write\n');
    return;
  }
  try {
    makeFolder(dirname(settings));
    const copy = before === '' ? undefined : backupOf(settings);
    if (copy !== undefined) copyFileSync(settings, copy);
    // The client may have changed its file in the meantime.
    const isWritten = replaceFile(
      settings,
      Buffer.from(after),
      () => (existsSync(settings) ? read(settings, shown) : '') === before,
    );
    if (!isWritten) throw new Error('another program has just changed it: try again');
    context.stderr.write(
      `written: ${shown}${copy === undefined ? '' : `; the former file is ${copy.slice(settings.lastIndexOf('/') + 1)}`}\n`,
    );
  } catch (error) {
    throw new CommandError('not_ok', `cannot write ${shown}: ${messageOf(error)}`);
  }
}

function read(path: string, shown: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new CommandError('usage', `cannot read ${shown}: ${messageOf(error)}`);
  }
}

/** A name beside the file that is not taken. */
function backupOf(path: string): string {
  for (let count = 1; ; count += 1) {
    const copy = `${path}.bak${count === 1 ? '' : count}`;
    if (!existsSync(copy)) return copy;
  }
}

function hints(client: ClientSettings, { policies }: Endpoint, keyVariable: string | undefined): string {
  if (keyVariable !== undefined)
    return `# ${client.keyHint?.(keyVariable) ?? `${client.title} reads the key from the variable ${keyVariable}: set it where ${client.title} is started`}\n`;
  const signIn = policies.some((key) => key === 'mcpAuthentication' || key === 'jwtAuth');
  return signIn ? `# ${client.title} will ask you to sign in\n` : '';
}
