import { randomBytes } from 'node:crypto';
import { elementsOf, entryIn, isRecord, membersOf, stringIn } from '../../../core/foreign.ts';
import { type Imported, NotImported } from '../imported.ts';
import { readServers } from '../mcp-servers.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import { UNKNOWN_VALUE } from '../variables.ts';
import { cacheOf } from './cache.ts';
import { type Deployment, type ModelContext, readDeployments } from './deployments.ts';
import { addGroups, aliasesOf, type Choice, fallbacksOf } from './groups.ts';
import { Lost } from './lost.ts';
import { withCredentials } from './mcp-credentials.ts';
import { budgetsOf, healthOf, retryOf, type Sections, timeoutOf } from './policies.ts';
import { catalogOf } from './prices.ts';
import { PROVIDERS } from './providers.ts';
import { reference, referencesIn, secret, variableIn } from './references.ts';

type Entry = Readonly<Record<string, unknown>>;

/** `routing_strategy`. Those by use count tokens of each deployment against its limits, which has no counterpart. */
const CHOICES: Readonly<Record<string, Choice>> = {
  'simple-shuffle': 'weight',
  'latency-based-routing': 'latency',
  'least-busy': 'latency',
  'cost-based-routing': 'cost',
};

export const isLitellm = (value: unknown): value is Entry =>
  isRecord(value) && Array.isArray(value['model_list']);

/** Adds what LiteLLM's `config.yaml` has: models, the key of their clients, settings of all calls, and MCP servers. */
export function readLitellm(file: Entry, context: PlaceholderContext, imported: Imported): void {
  const lost = new Lost(context.source);
  for (const [name, value] of Object.entries(membersOf(file['environment_variables'])))
    if (typeof value === 'string') context.variables.offer(name, value);
  context.variables.reserve(referencesIn(file));
  context.variables.reserve(Object.values(PROVIDERS).flatMap(({ key }) => key ?? []));
  const sections: Sections = {
    general: membersOf(file['general_settings']),
    litellm: membersOf(file['litellm_settings']),
    router: membersOf(file['router_settings']),
  };
  const deployments = deploymentsOf(file, { context, lost, credentials: credentialsOf(file) }, imported);
  const { general, litellm, router } = sections;
  const masterKey = general['master_key'];
  if (typeof masterKey === 'string') {
    const named = variableIn(masterKey);
    imported.clientKeys.push(
      named === undefined
        ? secret('LITELLM_MASTER_KEY', masterKey, 'general_settings', context)
        : // Until it is filled in, nobody can guess it.
          reference(named, context, `${UNKNOWN_VALUE}-${randomBytes(18).toString('base64url')}`),
    );
  }
  const links = {
    fallbacks: fallbacksOf(
      router['fallbacks'] ?? litellm['fallbacks'],
      router['default_fallbacks'] ?? litellm['default_fallbacks'],
      lost,
    ),
    aliases: aliasesOf(router['model_group_alias']),
    cache: cacheOf(litellm, lost),
    health: healthOf(sections),
    choice: entryIn(CHOICES, stringIn(router['routing_strategy']) ?? '') ?? 'weight',
  };
  addGroups(deployments, links, lost, context.source, imported);
  addPolicies(sections, deployments, lost, imported);
  const servers = file['mcp_servers'];
  if (isRecord(servers)) {
    const { servers: given, policies } = withCredentials(servers, context, lost);
    readServers(given, context, imported, policies);
  }
  addRest(file, sections, lost);
  imported.leftOut.push(...lost.lines);
}

function deploymentsOf(file: Entry, at: ModelContext, imported: Imported): Deployment[] {
  return elementsOf(file['model_list']).flatMap((each, index) => {
    const name = stringIn(membersOf(each)['model_name']) ?? `model_list[${index}]`;
    try {
      return readDeployments(name, each, at);
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      imported.leftOut.push({
        what: `${name} in ${at.context.source}`,
        reason: error.message,
        isWarning: true,
      });
      return [];
    }
  });
}

const credentialsOf = (file: Entry): ReadonlyMap<string, Entry> =>
  new Map(
    elementsOf(file['credential_list'])
      .map(membersOf)
      .map((each) => [stringIn(each['credential_name']) ?? '', membersOf(each['credential_values'])]),
  );

function addPolicies(
  sections: Sections,
  deployments: readonly Deployment[],
  lost: Lost,
  { policies, prices }: Imported,
): void {
  const timeouts = deployments.map(({ name, timeout }) => [name, timeout] as const);
  const budgets = budgetsOf(sections, lost);
  const found = { timeout: timeoutOf(sections, timeouts, lost), retry: retryOf(sections, lost), budgets };
  for (const [key, value] of Object.entries(found)) {
    if (value === undefined) continue;
    if (key in policies)
      lost.add(`llm.policies.${key}`, 'that of another file is used', { isWarning: key === 'budgets' });
    else policies[key] = value;
  }
  const catalog = catalogOf(deployments, lost);
  if (Object.keys(catalog).length > 0) prices.push(catalog);
}

/** Everything that is not read above. */
function addRest(file: Entry, { general, litellm, router }: Sections, lost: Lost): void {
  lost.addRest(file, '', [
    ...['model_list', 'general_settings', 'litellm_settings', 'router_settings', 'mcp_servers'],
    ...['environment_variables', 'credential_list'],
  ]);
  lost.addRest(general, 'general_settings.', ['master_key']);
  const both = ['fallbacks', 'default_fallbacks', 'num_retries', 'allowed_fails', 'cooldown_time'];
  lost.addRest(litellm, 'litellm_settings.', [
    ...[...both, 'request_timeout', 'max_budget', 'budget_duration'],
    ...(litellm['cache'] === true ? ['cache', 'cache_params'] : []),
  ]);
  const isKnownChoice = entryIn(CHOICES, stringIn(router['routing_strategy']) ?? '') !== undefined;
  lost.addRest(router, 'router_settings.', [
    ...[...both, 'timeout', 'retry_policy', 'retry_after', 'model_group_alias', 'disable_cooldowns'],
    ...(isKnownChoice ? ['routing_strategy'] : []),
  ]);
}
