import { NotImported } from '../imported.ts';
import { type PlaceholderContext, UNKNOWN_URL } from '../placeholders.ts';
import type { KnownProvider } from './providers.ts';
import { reference, secret, withoutOsEnviron } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

interface Connected {
  readonly provider: string;
  readonly params: Entry;
  readonly auth?: Entry;
  /** The region of AWS that is a part of the model's name. */
  readonly region?: string;
}

interface Named {
  readonly name: string;
  /** The name after that of the provider. */
  readonly model: string;
  readonly context: PlaceholderContext;
}

/** How a provider is reached, with the same address and key as by LiteLLM. @throws NotImported */
export function connection(known: KnownProvider, params: Entry, { name, model, context }: Named): Connected {
  const text = (...keys: readonly string[]): string | undefined => {
    const value = keys.map((key) => params[key]).find((each) => typeof each === 'string' && each !== '');
    return typeof value === 'string' ? value : undefined;
  };
  const given = text('api_base', 'base_url');
  const base =
    given === undefined
      ? undefined
      : withoutOsEnviron(given, context, UNKNOWN_URL).replace(/(?<!\/)\/+$/, '');
  const { provider } = known;
  if (provider === 'azure') return azure(known, base, { name, context, text });
  const apiKey = provider === 'vertex' ? undefined : keyOf(known, text('api_key'), name, context);
  const project = text('vertex_project');
  const location = text('vertex_location');
  const aws = provider === 'bedrock' ? awsKeys(text, name, context) : undefined;
  const [, region] =
    (provider === 'bedrock' && /^(?:[a-z]+\/)?([a-z]{2}(?:-[a-z]+)+-\d)\//.exec(model)) || [];
  return {
    provider,
    ...(region === undefined ? {} : { region }),
    params: {
      ...(apiKey === undefined ? {} : { apiKey }),
      ...baseUrl(known, base),
      ...(provider === 'bedrock' ? { awsRegion: region ?? awsRegion(text('aws_region_name'), context) } : {}),
      ...(project === undefined ? {} : { vertexProject: withoutOsEnviron(project, context) }),
      ...(location === undefined ? {} : { vertexRegion: withoutOsEnviron(location, context) }),
    },
    ...(aws === undefined ? {} : { auth: { aws } }),
  };
}

type Text = (...keys: readonly string[]) => string | undefined;

function baseUrl(known: KnownProvider, base: string | undefined): Entry {
  if (base === undefined) return known.base === undefined ? {} : { baseUrl: known.base };
  const url = known.baseUrl === undefined ? base : known.baseUrl(base);
  if (url === undefined)
    throw new NotImported('its `api_base` is the address of a call in an API that the gateway does not use');
  return { baseUrl: url };
}

/** Without a key, the client's key would be sent on, which LiteLLM never does. */
function keyOf(
  { key, needsNoKey = false }: KnownProvider,
  given: string | undefined,
  name: string,
  context: PlaceholderContext,
): string | undefined {
  if (given !== undefined) return secret(`${name}_API_KEY`, given, name, context);
  if (needsNoKey && (key === undefined || !context.variables.has(key))) return 'none';
  return key === undefined ? undefined : reference(key, context);
}

/** LiteLLM's own default is `us-west-2`. */
function awsRegion(given: string | undefined, context: PlaceholderContext): string {
  if (given !== undefined) return withoutOsEnviron(given, context);
  const variable = ['AWS_REGION_NAME', 'AWS_REGION'].find((name) => context.variables.has(name));
  return variable === undefined ? 'us-west-2' : reference(variable, context);
}

/** Keys in the file; those of the environment are found without them. */
function awsKeys(text: Text, name: string, context: PlaceholderContext): Entry | undefined {
  const [id, key, token] = [
    text('aws_access_key_id'),
    text('aws_secret_access_key'),
    text('aws_session_token'),
  ];
  if (id === undefined || key === undefined) return undefined;
  const read = (part: string, value: string): string => secret(`${name}_${part}`, value, name, context);
  return {
    accessKeyId: read('AWS_ACCESS_KEY_ID', id),
    secretAccessKey: read('AWS_SECRET_ACCESS_KEY', key),
    ...(token === undefined ? {} : { sessionToken: read('AWS_SESSION_TOKEN', token) }),
  };
}

/** The version of the API that LiteLLM uses if a file has none. */
const AZURE_VERSION = '2025-02-01-preview';

function azure(
  known: KnownProvider,
  base: string | undefined,
  { name, context, text }: { name: string; context: PlaceholderContext; text: Text },
): Connected {
  const isAzureAi = known.key === 'AZURE_AI_API_KEY';
  const apiKey = keyOf(known, text('api_key'), name, context);
  const address = base ?? reference(isAzureAi ? 'AZURE_AI_API_BASE' : 'AZURE_API_BASE', context, UNKNOWN_URL);
  const key = apiKey === undefined ? {} : { apiKey };
  const [, resource] = /^https:\/\/([A-Za-z0-9-]+)\.services\.ai\.azure\.com/.exec(address) ?? [];
  if (isAzureAi && resource !== undefined)
    return {
      provider: 'azure',
      params: { ...key, azureResourceName: resource, azureResourceType: 'foundry' },
    };
  // Other models of Azure AI are servers with the OpenAI API.
  if (isAzureAi) return { provider: 'oaiCompat', params: { ...key, baseUrl: address } };
  const [, host] = /^https:\/\/([A-Za-z0-9-]+)\.openai\.azure\.com$/.exec(address) ?? [];
  const version = withoutOsEnviron(text('api_version') ?? AZURE_VERSION, context, AZURE_VERSION);
  const isDated = !/^(?:v1|latest|preview)$/.test(version);
  return {
    provider: 'azure',
    params: {
      ...key,
      ...(host === undefined
        ? { baseUrl: `${address}/openai${isDated ? '' : '/v1'}` }
        : { azureResourceName: host }),
      azureApiVersion: version,
    },
  };
}
