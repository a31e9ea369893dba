import { randomBytes } from 'node:crypto';
import {
  elementsOf,
  entryIn,
  isRecord,
  membersOf,
  shownValue,
  stringIn,
  textIn,
} from '../../../core/foreign.ts';
import { type Imported, NotImported } from '../imported.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import { UNKNOWN_VALUE } from '../variables.ts';
import { Watched } from '../watched.ts';
import { cacheOf } from './cache.ts';
import { type Deployment, type ModelContext, readDeployments } from './deployments.ts';
import { addGroups, aliasesOf, type Choice, fallbacksOf } from './groups.ts';
import { guardrailsOf, written } from './guardrails.ts';
import { Lost } from './lost.ts';
import { addServers } from './mcp-servers.ts';
import { budgetsOf, healthOf, retryOf, type Sections, timeoutOf } from './policies.ts';
import { catalogOf } from './prices.ts';
import { PROVIDERS } from './providers.ts';
import { reference, referencesIn, secret, variableIn } from './references.ts';
import { reportUnread } from './unread.ts';

type Entry = Readonly<Record<string, unknown>>;

/** `routing_strategy`. Those by use count tokens of each deployment against its limits, which has no counterpart. */
const CHOICES: Readonly<Record<string, Choice>> = {
  'simple-shuffle': 'weight',
  'latency-based-routing': 'latency',
  'least-busy': 'latency',
  'cost-based-routing': 'cost',
};

const NOT_BY_USE = 'not by use: by weight, or by latency, calls in flight and failures';

export const isLitellm = (value: unknown): value is Entry =>
  isRecord(value) && Array.isArray(value['model_list']);

/** Adds what LiteLLM's `config.yaml` has: models, the key of their clients, settings of all calls, and MCP servers. */
export function readLitellm(original: Entry, context: PlaceholderContext, imported: Imported): void {
  const lost = new Lost(context.source);
  const raw = withCredentialValues(original);
  const watched = new Watched();
  const file = membersOf(watched.view(raw));
  const { variables } = context;
  for (const [name, value] of Object.entries(membersOf(file['environment_variables'])))
    if (isPlain(value)) variables.offer(name, String(value));
  variables.reserve(referencesIn(raw));
  variables.reserve(Object.values(PROVIDERS).flatMap(({ key }) => key ?? []));
  const sections: Sections = {
    general: membersOf(file['general_settings']),
    litellm: membersOf(file['litellm_settings']),
    router: membersOf(file['router_settings']),
  };
  const guardrails = guardrailsOf(file['guardrails'], guardrailNames(file), context, lost);
  const at = { context, lost, credentials: credentialsOf(file, lost), guardrails: guardrails.named };
  const deployments = deploymentsOf(file, at, imported);
  for (const [owner, [first, ...others]] of Map.groupBy(deployments, ({ name }) => name))
    if (others.length === 0 && first?.shares.weight !== undefined) lost.add('weight', ALONE, { owner });
  const { litellm, router } = sections;
  addMasterKey(sections.general['master_key'], context, lost, imported);
  const strategy = textIn(router['routing_strategy']);
  const choice = entryIn(CHOICES, strategy);
  if (strategy !== '' && choice === undefined) lost.add('router_settings.routing_strategy', NOT_BY_USE);
  const links = {
    fallbacks: fallbacksOf(
      router['fallbacks'] ?? litellm['fallbacks'],
      router['default_fallbacks'] ?? litellm['default_fallbacks'],
      lost,
    ),
    aliases: aliasesOf(router['model_group_alias']),
    cache: cacheOf(litellm, lost),
    health: healthOf(sections),
    choice: choice ?? 'weight',
  };
  if (elementsOf(file['model_list']).length === 0) lost.add('model_list', NO_MODELS, { isWarning: true });
  addGroups(deployments, links, lost, context.source, imported);
  addPolicies(sections, deployments, written(guardrails.all), lost, imported);
  addServers(file['mcp_servers'], context, lost, imported);
  reportUnread(raw, watched, variables, lost);
  imported.leftOut.push(...lost.lines);
}

const NO_MODELS = "it has none: models that were added in LiteLLM's pages are in its database";

const ALONE = 'there is no other deployment of this name';

const MONTH =
  'a budget of 30d is one of a calendar month, as in LiteLLM, whose windows of 30 days begin on the first';

/** Names of guardrails that models have. */
const guardrailNames = (file: Entry): ReadonlySet<string> =>
  new Set(
    elementsOf(file['model_list']).flatMap((each) =>
      elementsOf(membersOf(membersOf(each)['litellm_params'])['guardrails']).map(shownValue),
    ),
  );

const isPlain = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);

/** The models with the values of `credential_list` that they name. */
function withCredentialValues(file: Entry): Entry {
  const credentials = new Map(
    elementsOf(file['credential_list'])
      .map(membersOf)
      .map((each) => [textIn(each['credential_name']), membersOf(each['credential_values'])]),
  );
  const models = elementsOf(file['model_list']).map((each) => {
    const params = membersOf(membersOf(each)['litellm_params']);
    const values = credentials.get(textIn(params['litellm_credential_name']));
    return values === undefined ? each : { ...membersOf(each), litellm_params: { ...values, ...params } };
  });
  return { ...file, model_list: models };
}

/** Names of the credentials that there are. The models have their values already, unless no model names them. */
function credentialsOf(file: Entry, { covered }: Lost): ReadonlySet<string> {
  const used = new Set(
    elementsOf(file['model_list']).map((each) =>
      textIn(membersOf(membersOf(each)['litellm_params'])['litellm_credential_name']),
    ),
  );
  const names = elementsOf(file['credential_list']).map((each) => textIn(membersOf(each)['credential_name']));
  for (const [index, name] of names.entries())
    if (used.has(name)) covered.add(`credential_list.${index}.credential_values`);
  return new Set(names);
}

function deploymentsOf(file: Entry, at: ModelContext, imported: Imported): Deployment[] {
  return elementsOf(file['model_list']).flatMap((each, index) => {
    const name = stringIn(membersOf(each)['model_name']) ?? `model_list[${index}]`;
    try {
      return readDeployments(name, each, at);
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      at.lost.covered.add(`model_list.${index}`);
      imported.leftOut.push({
        what: `${name} in ${at.context.source}`,
        reason: error.message,
        isWarning: true,
      });
      return [];
    }
  });
}

function addMasterKey(key: unknown, context: PlaceholderContext, lost: Lost, { clientKeys }: Imported): void {
  if (key === undefined || key === null) return;
  if (!isPlain(key)) {
    lost.add('general_settings.master_key', 'not a text: calls need no key', { isWarning: true });
    lost.covered.add('general_settings.master_key');
    return;
  }
  const named = variableIn(String(key));
  clientKeys.push(
    named === undefined
      ? secret('LITELLM_MASTER_KEY', String(key), 'litellm', context)
      : // Until it is filled in, nobody can guess it.
        reference(named, context, `${UNKNOWN_VALUE}-${randomBytes(18).toString('base64url')}`),
  );
}

function addPolicies(
  sections: Sections,
  deployments: readonly Deployment[],
  guardrails: Entry | undefined,
  lost: Lost,
  { policies, prices, notes }: Imported,
): void {
  const timeouts = deployments.map(({ name, timeout }) => [name, timeout] as const);
  const budgets = budgetsOf(sections, lost);
  const found = {
    timeout: timeoutOf(sections, timeouts, lost),
    retry: retryOf(sections, lost),
    budgets,
    guardrails,
  };
  for (const [key, value] of Object.entries(found)) {
    if (value === undefined) continue;
    if (key in policies)
      lost.add(`llm.policies.${key}`, 'that of another file is used', {
        isWarning: ['budgets', 'guardrails'].includes(key),
      });
    else policies[key] = value;
  }
  if (sections.litellm['budget_duration'] === '30d' && budgets !== undefined) notes.push(MONTH);
  const catalog = catalogOf(deployments, lost);
  if (Object.keys(catalog).length > 0) prices.push(catalog);
}
