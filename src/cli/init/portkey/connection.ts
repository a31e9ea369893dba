import { membersOf, stringIn, textIn } from '../../../core/foreign.ts';
import { NotImported } from '../imported.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import { literal } from '../values.ts';
import { variableName } from '../variables.ts';
import type { Lost } from './lost.ts';
import { type KnownProvider, providerInName, providerOf } from './providers.ts';

type Entry = Readonly<Record<string, unknown>>;

/** A target, and what is needed to read it. */
export interface Target {
  readonly settings: Entry;
  /** For people, and in names of variables. */
  readonly owner: string;
  readonly context: PlaceholderContext;
  readonly lost: Lost;
}

/** Members that say how a provider is reached. */
export const CONNECTION_KEYS: readonly string[] = [
  ...['provider', 'api_key', 'virtual_key', 'custom_host', 'override_params'],
  ...['resource_name', 'deployment_id', 'api_version', 'azure_model_name'],
  ...['aws_region', 'aws_access_key_id', 'aws_secret_access_key', 'aws_session_token'],
  ...['vertex_project_id', 'vertex_region', 'openai_organization', 'openai_project'],
  ...['anthropic_version', 'anthropic_beta'],
];

/** Headers that clients still send, and Portkey keeps to itself; a config has keys of other providers. */
const FOR_PORTKEY = ['config', 'virtual-key', 'provider', 'metadata', 'trace-id'].map(
  (name) => `x-portkey-${name}`,
);

/** `provider`, `params` and further members of the model of a target. @throws NotImported */
export function connection(target: Target): Entry {
  const { settings } = target;
  const given = stringIn(settings['provider']);
  const virtual = stringIn(settings['virtual_key']) ?? (given?.startsWith('@') ? given.slice(1) : undefined);
  if (given === undefined && virtual === undefined)
    throw new NotImported('it has no `provider`: clients choose it with `x-portkey-provider`');
  const name = given === undefined || given.startsWith('@') ? providerInName(virtual ?? '') : given;
  if (name === undefined)
    throw new NotImported(`the file does not say which provider the virtual key \`${virtual ?? ''}\` is of`);
  const known = providerOf(name);
  if (known === undefined) throw new NotImported(`the provider \`${name}\` has no counterpart`);
  const apiKey = keyOf(known, virtual, target);
  if (virtual !== undefined) reportVirtual(virtual, name, given, target);
  const model = modelOf(settings, known);
  const headers = headersOf(settings);
  const aws = known.provider === 'bedrock' ? awsKeys(target) : undefined;
  return {
    provider: known.provider,
    params: {
      ...(apiKey !== undefined && { apiKey }),
      ...(model !== undefined && { model: nameAtProvider(known, model) }),
      ...addressOf(known, settings),
    },
    ...(aws !== undefined && { auth: { aws } }),
    requestHeaders: {
      ...(Object.keys(headers).length > 0 && { set: headers }),
      remove: [...FOR_PORTKEY],
    },
  };
}

/** The name that replaces that of clients; `@slug/name` also names a virtual key. */
function modelOf(settings: Entry, { provider }: KnownProvider): string | undefined {
  const deployment = provider === 'azure' ? stringIn(settings['deployment_id']) : undefined;
  const named = deployment ?? stringIn(membersOf(settings['override_params'])['model']);
  const model = named?.replace(/^@[^/]+\//, '');
  return model === undefined || model === '' ? undefined : String(literal(model));
}

/** Portkey writes the publisher before names of Vertex AI. */
const nameAtProvider = ({ provider }: KnownProvider, model: string): string =>
  provider === 'vertex' ? model.replace(/^(?:anthropic|meta)\./, '') : model;

/** The variables that stand for the key of a target which the file does not have. */
export function keysWithout({ settings }: Pick<Target, 'settings'>): string[] {
  const given = stringIn(settings['provider']) ?? '';
  const virtual = stringIn(settings['virtual_key']) ?? (given.startsWith('@') ? given.slice(1) : undefined);
  if (virtual !== undefined) return [variableName(virtual)];
  const key = providerOf(given)?.key;
  return key === undefined || textIn(settings['api_key']) !== '' ? [] : [key];
}

/** Without a key, that of the client would be sent on, which is a key of Portkey. */
function keyOf(
  { provider, key }: KnownProvider,
  virtual: string | undefined,
  { settings, owner, context, lost }: Target,
): string | undefined {
  const { variables, source } = context;
  const given = stringIn(settings['api_key']);
  if (provider === 'vertex' || provider === 'bedrock') {
    if (given !== undefined)
      lost.add('api_key', 'credentials of this cloud are found as by its own tools', { owner });
    return undefined;
  }
  if (given !== undefined && given !== '')
    return variables.reference(key ?? `${owner}_API_KEY`, given, owner, `${owner} in ${source}`);
  if (virtual === undefined && key === undefined) return 'none';
  const name = virtual === undefined ? (key ?? '') : variableName(virtual);
  variables.need(name, `${owner} in ${source}`);
  return `$\{${name}}`;
}

function reportVirtual(
  virtual: string,
  name: string,
  given: string | undefined,
  { owner, lost }: Target,
): void {
  const isGuessed = given === undefined || given.startsWith('@');
  lost.add(
    given?.startsWith('@') ? 'provider' : 'virtual_key',
    `its key is kept by Portkey: fill in ${variableName(virtual)}${isGuessed ? `; the provider is \`${name}\` by its name` : ''}`,
    { owner },
  );
}

function addressOf(known: KnownProvider, settings: Entry): Entry {
  const text = (key: string): unknown => literal(stringIn(settings[key]));
  const host = stringIn(settings['custom_host'])?.replace(/(?<!\/)\/+$/, '');
  const isAzureV1 = known.provider === 'azure' && /^(?:v1)?$/.test(stringIn(settings['api_version']) ?? '');
  const version = isAzureV1 ? '/v1' : (known.version ?? '');
  const base = host === undefined || host === '' ? known.base : `${host}${version}`;
  const found = {
    baseUrl: literal(base),
    ...(known.provider === 'azure' && {
      azureResourceName: base === undefined ? text('resource_name') : undefined,
      azureApiVersion: text('api_version'),
    }),
    ...(known.provider === 'bedrock' && { awsRegion: text('aws_region') ?? 'us-east-1' }),
    ...(known.provider === 'vertex' && {
      vertexProject: text('vertex_project_id'),
      vertexRegion: text('vertex_region'),
    }),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

const HEADERS: Readonly<Record<string, string>> = {
  openai_organization: 'openai-organization',
  openai_project: 'openai-project',
  anthropic_version: 'anthropic-version',
  anthropic_beta: 'anthropic-beta',
};

const headersOf = (settings: Entry): Entry =>
  Object.fromEntries(
    Object.entries(HEADERS).flatMap(([key, header]) => {
      const value = stringIn(settings[key]);
      return value === undefined ? [] : [[header, literal(value)]];
    }),
  );

function awsKeys({ settings, owner, context }: Target): Entry | undefined {
  const read = (key: string): string | undefined => {
    const value = stringIn(settings[key]);
    if (value === undefined || value === '') return undefined;
    return context.variables.reference(variableName(key), value, owner, `${owner} in ${context.source}`);
  };
  const [accessKeyId, secretAccessKey] = [read('aws_access_key_id'), read('aws_secret_access_key')];
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  const sessionToken = read('aws_session_token');
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
}
