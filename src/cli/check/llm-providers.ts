import type { Dispatcher } from 'undici';
import { type Diagnostic, pathText } from '../../core/diagnostic.ts';
import { errorCode, jsonIn, membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import type { ModelsProbe } from '../../server/kernel/probe.ts';
import { HeaderList } from '../../server/kernel/request/header-list.ts';
import { createUpstream, tryConnection } from '../../server/transport/upstream/upstream.ts';
import { explainUpstreamError } from '../../server/transport/upstream/upstream-error.ts';
import {
  type Check,
  type CheckContext,
  type CheckGroup,
  type CheckResult,
  check,
  fail,
  notKnown,
  ok,
  skip,
  warn,
} from './check.ts';
import { probesOf } from './probes.ts';

/**
 * Connects to the LLM providers, and requests the model list from those that have a key. A key is sent nowhere else.
 */
export const llmProviders: CheckGroup = {
  name: 'llm',
  title: () => 'llm providers',
  run(context) {
    if (context.config === undefined) return [check('llm', [...keysWithoutValue(context), notKnown])];
    const endpoints = llmEndpoints(context).map((endpoint) =>
      check(namesOf(endpoint), checkEndpoint(endpoint, context)),
    );
    const all = [...endpoints, ...notChecked(context)];
    return all.length === 0 ? [check('llm', skip('none'))] : all;
  },
};

/** Such a configuration is invalid, so the provider that the key belongs to is unknown. */
function keysWithoutValue({ loaded: { diagnostics, source }, env }: CheckContext): CheckResult[] {
  const isKey = ({ path }: Diagnostic): boolean => path.at(-1) === 'apiKey' && path.at(-2) === 'params';
  return diagnostics.filter(isKey).flatMap(({ path }) => {
    const variable = source.variableAt(path);
    if (variable === undefined) return [];
    const problem = env[variable] === undefined ? 'is not set' : 'is empty';
    return fail(
      `${pathText(path)} is the environment variable ${variable}, which ${problem}`,
      `set ${variable} for agctl; if clients bring their own keys, remove apiKey`,
    );
  });
}

async function checkEndpoint(endpoint: LlmEndpoint, { options }: CheckContext): Promise<CheckResult[]> {
  const shown = `${namesOf(endpoint)}   ${endpoint.url.host}`;
  const key = keyProblem(endpoint, shown);
  const keyResults = key === undefined ? [] : [key];
  if (options.offline) return [...keyResults, skip(`${shown} not contacted (--offline)`)];
  const problem = await tryConnection(endpoint.url, LIMITS.checkConnectTimeout);
  if (problem !== undefined) {
    const why = explainUpstreamError(problem);
    return [...keyResults, fail(`${shown}: ${why}`, connectionFix(endpoint, problem))];
  }
  const headers = new HeaderList([...endpoint.headers]);
  const canAsk = key?.status !== 'fail' && (endpoint.key !== undefined || headers.has('authorization'));
  return [
    ...keyResults,
    canAsk ? await askForModels(endpoint, headers, shown) : ok(`${shown} accepts connections`),
  ];
}

const MOST_NAMES = 3;

function namesOf({ models }: Pick<LlmEndpoint, 'models'>): string {
  const more = models.length - MOST_NAMES;
  return models.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** Problems of the key that are visible without a request. */
function keyProblem(endpoint: LlmEndpoint, shown: string): CheckResult | undefined {
  const { key, provider, isConfigured, url } = endpoint;
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
    return fail(
      `${shown}: ${keyOf(endpoint)} contains spaces, line breaks or other characters that a key cannot have`,
      'set it again, without the characters that were copied along with it',
    );
  }
  // A provider at a custom address may need no key; the known ones on the internet all do.
  const needsKey = !isConfigured && url.protocol === 'https:';
  const isSent = key !== undefined || endpoint.hasCredential;
  if (!needsKey || isSent || new HeaderList([...endpoint.headers]).has('authorization')) return undefined;
  const variable = `${provider === 'oaiCompat' ? 'OPENAI' : provider.toUpperCase()}_API_KEY`;
  return warn(
    `${shown}: no key is configured, so each client must send its own`,
    `set ${endpoint.settings.key}, for example to $${variable}; leave it out if clients bring their own keys`,
  );
}

/** Describes the key without its text. */
function keyOf({ key, variable }: LlmEndpoint): string {
  if (key === undefined) return 'the key in requestHeaders';
  return variable === undefined ? 'the key' : `the key in ${variable}`;
}

async function askForModels(endpoint: LlmEndpoint, headers: HeaderList, shown: string): Promise<CheckResult> {
  const { url } = endpoint;
  const upstream = createUpstream({ origin: url.origin });
  headers.set('host', upstream.authority);
  try {
    const answer = await upstream.request({
      method: 'GET',
      path: `${url.pathname.replace(/(?<!\/)\/+$/, '')}/models`,
      headers: headers.raw,
      signal: AbortSignal.timeout(LIMITS.checkResponseTimeout),
    });
    return judge(answer.statusCode, await answerOf(answer), endpoint, shown);
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    const why = isLate
      ? `no answer within ${LIMITS.checkResponseTimeout / 1000} s`
      : explainUpstreamError(error);
    return fail(`${shown}: ${why}`, 'check the state of the provider, and the network between it and agctl');
  } finally {
    await upstream.close();
  }
}

type Listed = 'models' | 'other JSON' | 'no JSON';

/** What a provider has answered. Nothing of it is shown, because it may repeat the key. */
async function answerOf({ statusCode, body }: Dispatcher.ResponseData): Promise<Listed> {
  const received: AsyncIterable<Buffer> = body.on('error', () => undefined);
  if (statusCode !== 200) {
    body.destroy();
    return 'no JSON';
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of received) {
    chunks.push(chunk);
    size += chunk.length;
    // The longest lists have some hundred KiB.
    if (size > LIMITS.responseBodyBytes) return 'no JSON';
  }
  const value = jsonIn(Buffer.concat(chunks).toString('utf8'));
  if (value === undefined) return 'no JSON';
  // `data` of the OpenAI API and of Anthropic, `models` of Google and Cohere; Together answers with the list itself.
  const isList = [value, membersOf(value)['data'], membersOf(value)['models']].some(Array.isArray);
  return isList ? 'models' : 'other JSON';
}

/** Interprets the response to `GET …/models`. */
function judge(status: number, listed: Listed, endpoint: LlmEndpoint, shown: string): CheckResult {
  const key = keyOf(endpoint);
  const place = `is ${endpoint.settings.url} the URL before \`/chat/completions\`, such as \`https://host/v1\`?`;
  if (status === 200 && listed === 'models') return ok(`${shown} lists its models and accepts ${key}`);
  if (status === 401 || status === 403) {
    const { provider, variable } = endpoint;
    const where = variable ?? (endpoint.key === undefined ? 'requestHeaders' : endpoint.settings.key);
    return fail(
      `${shown}: the key was rejected (${status})`,
      `put a key of ${provider === 'oaiCompat' ? endpoint.url.hostname : provider} that is valid, and may list models, into ${where}`,
    );
  }
  // Most providers use the path `/v1`; without it, calls are likely to be answered with status 404 too.
  if (status === 404 && endpoint.url.pathname === '/')
    return warn(`${shown}: nothing found at /models (404), and ${endpoint.settings.url} has no path`, place);
  if (status === 404 || status === 405)
    return ok(`${shown} is reachable, but does not list models (${status}): ${key} was not tried`);
  if (status >= 300 && status <= 399) return fail(`${shown}: redirects to another URL (${status})`, place);
  if (status === 429)
    return warn(`${shown}: too many requests (429)`, 'wait, or request a higher limit from the provider');
  if (status >= 500)
    return warn(
      `${shown}: is currently failing (${status})`,
      'try again later, and check the state of the provider',
    );
  const other =
    listed === 'no JSON' ? ', but not with JSON' : ', but with something else than a list of models';
  return warn(`${shown}: answers ${status}${status === 200 ? other : ''}`, place);
}

/** What to do about errors of TLS. `setting`: that of the address. */
const TLS_FIXES: Readonly<Record<string, (setting: string) => string>> = {
  CERT_HAS_EXPIRED: () => 'renew the certificate of the server, and check the clock of this machine',
  CERT_NOT_YET_VALID: () => 'check the clock of this machine',
  ERR_TLS_CERT_ALTNAME_INVALID: (setting) => `use the host name that the certificate is for in ${setting}`,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
};

function noTls(setting: string): string {
  return setting === 'hostOverride'
    ? 'port 443 is called over TLS: set the right port in hostOverride'
    : `write http:// instead of https:// in ${setting}, or set the right port`;
}

function connectionFix({ url, isConfigured, provider, settings }: LlmEndpoint, error: Error): string {
  const code = errorCode(error);
  const known = TLS_FIXES[code];
  if (known !== undefined) return known(settings.url);
  if (/CERT|SIGNATURE/.test(code))
    return 'set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority when starting agctl';
  const online = `is this machine online, and can its name server resolve ${url.hostname}?`;
  if (code === 'ENOTFOUND') return isConfigured ? `correct ${settings.url}; ${online}` : online;
  if (code.includes('TIMEOUT') || code.startsWith('EAI_'))
    return 'check the network, name server and firewall of this machine: agctl connects directly, without a proxy';
  const place = isConfigured ? `correct ${settings.url}` : `set ${settings.url} to its address`;
  if (code === 'ECONNREFUSED')
    return `start ${provider === 'ollama' ? '`ollama serve`' : 'the server'}, or ${place}`;
  return `check the network of this machine, or ${place}`;
}

/** An endpoint that lists models, with all models that it serves. */
interface LlmEndpoint extends ModelsProbe {
  /** Names of the models in the configuration. */
  readonly models: string[];
  /** Environment variable with the key, if the value is nothing but a reference to it. */
  readonly variable: string | undefined;
}

/** Every endpoint that serves models of the configuration, once per key. */
function llmEndpoints(context: CheckContext): LlmEndpoint[] {
  const endpoints = new Map<string, LlmEndpoint>();
  for (const { probe, path } of probesOf(context)) {
    if (probe.kind !== 'models' || probe.url === undefined) continue;
    const id = JSON.stringify([probe.url.href, probe.headers]);
    const known = endpoints.get(id);
    const variable = context.loaded.source.variableAt([...path, ...probe.keyPath]);
    if (known === undefined) endpoints.set(id, { ...probe, models: [probe.name], variable });
    else if (!known.models.includes(probe.name)) known.models.push(probe.name);
  }
  return [...endpoints.values()];
}

/** A line for each kind of provider that cannot be asked. */
function notChecked(context: CheckContext): Check[] {
  const unchecked = probesOf(context).flatMap(({ probe }) =>
    probe.kind === 'models' && probe.url === undefined ? [probe] : [],
  );
  const byProvider = Map.groupBy(unchecked, ({ provider, reason }) => `${provider} not checked: ${reason}`);
  return [...byProvider].map(([text, probes]) => {
    const models = namesOf({ models: [...new Set(probes.map(({ name }) => name))] });
    return check(models, skip(`${models}   ${text}`));
  });
}
