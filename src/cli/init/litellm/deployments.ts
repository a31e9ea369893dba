import { elementsOf, entryIn, membersOf, shownValue, stringIn } from '../../../core/foreign.ts';
import { NotImported } from '../imported.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import { literal, literalWithout, numeric } from '../values.ts';
import { isSecretName } from '../variables.ts';
import { connection } from './connection.ts';
import { type Checks, written } from './guardrails.ts';
import type { Lost } from './lost.ts';
import { costOf, type Price, priceOf } from './prices.ts';
import { PROVIDERS } from './providers.ts';
import { OTHER_TYPE } from './reasons.ts';
import { secret, variableIn, withoutOsEnviron } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

/** One entry of `model_list`: the name that clients request, which several entries may have. */
export interface Deployment {
  readonly name: string;
  readonly model: Readonly<Record<string, unknown>>;
  /** What LiteLLM draws by, the first that a group has: `weight`, `rpm`, `tpm`. */
  readonly shares: Readonly<Record<(typeof SHARES)[number], number | undefined>>;
  /** Deployments of a group with a higher number are used after the others. */
  readonly order: number;
  readonly price: Price | undefined;
  /** Of a token, as far as it is known. Only the order of costs matters. */
  cost(): number;
  readonly timeout: number | undefined;
}

export const SHARES = ['weight', 'rpm', 'tpm'] as const;

/** Members of `litellm_params` that LiteLLM sends with a request if its client did not set them. */
const FIELDS: readonly string[] = [
  ...['temperature', 'top_p', 'top_k', 'max_tokens', 'max_completion_tokens', 'n', 'seed', 'stop', 'user'],
  ...['presence_penalty', 'frequency_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'response_format'],
  ...[
    'reasoning_effort',
    'verbosity',
    'thinking',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'modalities',
  ],
  ...['service_tier', 'store', 'dimensions', 'encoding_format', 'input_type', 'voice', 'safety_settings'],
];

export interface ModelContext {
  readonly context: PlaceholderContext;
  readonly lost: Lost;
  /** Names of `credential_list`. */
  readonly credentials: ReadonlySet<string>;
  /** Guardrails that models may name. */
  readonly guardrails: ReadonlyMap<string, Checks>;
}

/**
 * The deployments of one entry of `model_list`; several for a model `*`, whose provider is in the name that clients request.
 *
 * @throws NotImported
 */
export function readDeployments(name: string, each: unknown, at: ModelContext): Deployment[] {
  const { litellm_params: own, model_info: info } = membersOf(each);
  const params = membersOf(own);
  const model = modelIn(params['model'], at.context);
  const credential = stringIn(params['litellm_credential_name']);
  if (credential !== undefined && !at.credentials.has(credential))
    at.lost.add('litellm_credential_name', NO_CREDENTIAL, { owner: name, isWarning: true });
  if (model !== '*' || params['custom_llm_provider'] !== undefined)
    return [readOne({ name, model }, params, info, at)];
  at.lost.add('model: *', 'of all providers, OpenAI and Anthropic: add an entry for each other one', {
    owner: name,
  });
  const all = name === '*' ? ANY_PROVIDER : ANY_PROVIDER.slice(0, 1);
  return all.map(([pattern, each]) =>
    readOne({ name: name === '*' ? pattern : name, model: each }, params, info, at),
  );
}

/** The model, which decides the provider: a variable has to have its value now. */
function modelIn(given: unknown, { variables }: PlaceholderContext): string {
  if (typeof given !== 'string') throw new NotImported('it has no `litellm_params.model`');
  const variable = variableIn(given);
  if (variable === undefined) return given;
  const value = variables.valueOf(variable);
  if (value === undefined)
    throw new NotImported(`its \`model\` is a variable without a value: set ${variable} for \`agctl init\``);
  variables.need(variable, '');
  return value;
}

const OTHERS = ': if it has the API of OpenAI, add a model with `oaiCompat` and its `baseUrl`';

const NO_CREDENTIAL =
  "there is no such entry in `credential_list`: those of LiteLLM's pages are in its database, set `apiKey` by hand";

const NO_LIMIT_OF_ITS_OWN = 'a deployment has no limit of its own; between deployments it is used as weight';

/** Names without a provider are those of OpenAI, unless they are known to be others. */
const ANY_PROVIDER = [
  ['*', 'openai/*'],
  ['openai/*', 'openai/*'],
  ['claude-*', 'anthropic/claude-*'],
  ['anthropic/*', 'anthropic/*'],
] as const;

function readOne(
  { name, model: requested }: { readonly name: string; readonly model: string },
  params: Entry,
  info: unknown,
  { context, lost, guardrails }: ModelContext,
): Deployment {
  const [kind, model] = providerAndModel(requested, params['custom_llm_provider']);
  const known = entryIn(PROVIDERS, kind);
  if (known === undefined) throw new NotImported(`the provider \`${kind}\` has no counterpart${OTHERS}`);
  if (membersOf(info)['blocked'] === true) throw new NotImported('blocked there');
  const { provider, region, ...connected } = connection(known, params, { name, model, context });
  const atProvider = nameAtProvider(model, region);
  const places = [params, membersOf(info), membersOf(params['model_info'])];
  const price = priceOf({ name, provider, model: atProvider }, places, lost);
  const number = (key: string, value: unknown): number | undefined => {
    const found = numeric(value);
    if (found !== undefined || value === undefined || value === null) return found;
    // A variable is reported as one that cannot stand there.
    if (variableIn(String(value)) === undefined) lost.add(key, OTHER_TYPE, { owner: name });
    return undefined;
  };
  const shares = {
    weight: number('weight', params['weight']),
    rpm: number('rpm', params['rpm']),
    tpm: number('tpm', params['tpm']),
  };
  for (const key of ['rpm', 'tpm'] as const)
    if (shares[key] !== undefined) lost.add(key, NO_LIMIT_OF_ITS_OWN, { owner: name });
  return {
    name,
    model: {
      provider,
      ...connected,
      params: {
        ...(atProvider === name && name.includes('*') ? {} : { model: atProvider }),
        ...connected.params,
      },
      ...requestFields(name, params, context),
      ...checksOf(name, elementsOf(params['guardrails']).map(shownValue), guardrails, lost),
    },
    shares,
    order:
      number('order', params['order']) ??
      number('order', membersOf(info)['order']) ??
      Number.POSITIVE_INFINITY,
    price,
    cost: () => costOf(provider, atProvider, price),
    timeout: number('timeout', params['timeout']),
  };
}

/** LiteLLM takes a model without a provider for one of OpenAI, or of Anthropic if its name says so. */
function providerAndModel(model: string, custom: unknown): [string, string] {
  if (typeof custom === 'string') return [custom, model.replace(`${custom}/`, '')];
  const slash = model.indexOf('/');
  if (slash > 0) return [model.slice(0, slash), model.slice(slash + 1)];
  return [model.startsWith('claude') ? 'anthropic' : 'openai', model];
}

/** Prefixes by which LiteLLM chooses one of several APIs of a provider, and a region of Bedrock. */
function nameAtProvider(model: string, region: string | undefined): string {
  const name = model.replace(/^(?:responses|converse|converse_like|invoke|o_series|gpt5_series)\//, '');
  return region === undefined ? name : name.replace(`${region}/`, '');
}

function requestFields(name: string, params: Entry, context: PlaceholderContext): Entry {
  const defaults: Record<string, unknown> = {};
  for (const key of FIELDS) {
    const value = params[key];
    if (value === undefined || value === null) continue;
    // A variable is reported as one that cannot stand there.
    if (typeof value !== 'string' || variableIn(value) === undefined) defaults[key] = literal(value);
  }
  const overrides = membersOf(
    literalWithout(membersOf(params['extra_body']), (key, value) =>
      secret(`${name}_${key}`, value, name, context),
    ),
  );
  const headers = headersOf(name, params, context);
  return {
    ...(Object.keys(defaults).length > 0 && { defaults }),
    ...(Object.keys(overrides).length > 0 && { overrides }),
    ...(Object.keys(headers).length > 0 && { requestHeaders: { set: headers } }),
  };
}

function checksOf(
  owner: string,
  names: readonly string[],
  guardrails: ReadonlyMap<string, Checks>,
  lost: Lost,
): Entry {
  const unknown = names.filter((name) => !guardrails.has(name));
  if (unknown.length > 0) lost.add('guardrails', `not imported: ${unknown.join(', ')}`, { owner });
  const own = names.flatMap((name) => guardrails.get(name) ?? []);
  const checks = written({
    request: own.flatMap(({ request }) => request),
    response: own.flatMap(({ response }) => response),
  });
  return checks === undefined ? {} : { guardrails: checks };
}

function headersOf(name: string, params: Entry, context: PlaceholderContext): Record<string, string> {
  const given = Object.entries({ ...membersOf(params['headers']), ...membersOf(params['extra_headers']) });
  const { organization } = params;
  if (typeof organization === 'string') given.push(['openai-organization', organization]);
  return Object.fromEntries(
    given.map(([header, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return [
        header,
        isSecretName(header)
          ? secret(`${name}_${header}`, text, name, context)
          : withoutOsEnviron(text, context),
      ];
    }),
  );
}
