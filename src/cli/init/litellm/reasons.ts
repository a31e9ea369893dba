import { entryIn, membersOf } from '../../../core/foreign.ts';
import { nearest } from '../../../core/suggest.ts';

/** Limits of spending, calls and access, and checks of texts: a gateway without them does what nobody expects of it. */
export const isCap = (key: string): boolean =>
  !/(?:^|[._])prometheus_/.test(key) && (LIMITS.test(key) || isAccess(key));

const LIMITS =
  /budget|(?:^|[._])[io]?(?:rpm|tpm)(?:_|$)|max_parallel_requests|guardrail|rate_limit|moderation|blocked/i;

const isAccess = (key: string): boolean =>
  /allowed_(?:ips|routes)|admin_only_routes|public_routes|jwt_?auth|custom_auth|access_groups/i.test(key);

/** Callbacks of LiteLLM that refuse or change calls. */
export const CALLBACKS_THAT_CHECK =
  /presidio|lakera|llamaguard|llmguard|hide_secrets|prompt_injection|banned_keywords|moderation|blocked_user|aporia|guardrail|azure_content_safety|_limiter/i;

const NO_LIMIT =
  'not limited: `agctl keys create --budget` limits a key, `policies.budgets` and `localRateLimit` all calls or those of each key';
const OTHER_CAUSE =
  'the next model is tried after a failure of the provider (5xx, 401, 402, 404, 408, 429, no answer), not after a request that it refuses';
const RECORD = 'metrics, traces and the record of requests are those of the gateway (docs/observability.md)';
const ALL_MODELS = 'set for all models alone: `llm.policies';
const CACHE = 'equal requests get an answer again with `cache` of a model';
const ONE_NAME = 'a target has one name, with which the names of its tools begin: rename the target';
const USER =
  'expressions read headers: `request.headers["x-user"]` as `key` of a budget, or as a field of the log';
const KEYS = 'keys, users and teams are created anew: `agctl keys create`';

/** Why members of the file have no counterpart, wherever they are. */
const REASONS: Readonly<Record<string, string>> = {
  max_parallel_requests: 'calls of one model are not limited',
  guardrails: 'guardrails are set as `llm.guardrails`, or `guardrails` of a model',
  default_team_settings: KEYS,
  default_team_params: KEYS,
  default_internal_user_params: KEYS,
  default_key_generate_params: KEYS,
  upperbound_key_generate_params: KEYS,
  database_url: `the database of the gateway is \`config.database\`; ${KEYS}`,
  allowed_ips: '`frontendPolicies.networkAuthorization` reads `source.address`',
  allowed_routes: '`llm.policies.authorization` has rules that read `request.path`',
  admin_only_routes: 'the admin server has an address of its own: `config.adminAddr`',
  public_routes: 'every call needs a key, except where `apiKey.mode` is `optional`',
  enable_jwt_auth: 'tokens are checked with `llm.policies.jwtAuth`',
  litellm_jwtauth: 'tokens are checked with `llm.policies.jwtAuth`',
  custom_auth: '`llm.policies` has `apiKey`, `jwtAuth`, `oidc` and `extAuthz`',
  context_window_fallbacks: OTHER_CAUSE,
  content_policy_fallbacks: OTHER_CAUSE,
  drop_params:
    'a parameter that a provider does not know is an error (400), never dropped: `transformation` of a model removes one',
  additional_drop_params: 'a parameter is removed with `transformation` of the model',
  timeout: `${ALL_MODELS}.timeout\``,
  stream_timeout: 'streams have the timeout of other calls',
  num_retries: `${ALL_MODELS}.retry\``,
  max_retries: `${ALL_MODELS}.retry\``,
  model_group_retry_policy: `${ALL_MODELS}.retry\``,
  allowed_fails_policy: 'failures of all kinds count alike: `health.eviction` of a model',
  routing_strategy_args: 'the choice of a model has no settings but weights',
  enable_pre_call_checks: 'whether a prompt fits is not checked before a call',
  cache: CACHE,
  cache_params: CACHE,
  cache_responses: CACHE,
  cache_kwargs: CACHE,
  caching_groups: CACHE,
  host: 'a Redis is `config.shared`',
  redis_host: 'evictions and limits are shared with `config.shared`',
  port: 'a Redis is `config.shared`',
  redis_port: 'evictions and limits are shared with `config.shared`',
  password: 'a Redis is `config.shared`',
  redis_password: 'evictions and limits are shared with `config.shared`',
  redis_url: 'evictions and limits are shared with `config.shared`',
  callbacks: RECORD,
  success_callback: RECORD,
  failure_callback: RECORD,
  service_callbacks: RECORD,
  audit_log_callbacks: RECORD,
  callback_settings: RECORD,
  alerting: RECORD,
  store_prompts_in_spend_logs: RECORD,
  set_verbose: 'the level of the log is `config.logging`',
  json_logs: 'the form of the log is `config.logging`',
  access_groups: '`allowedModels` of a key, or `--models` of a virtual key, say what it may call',
  tags: 'calls are not routed by tags: `matches` and `authorization` of a model read headers and claims',
  mock_response: '`provider: echo` answers without a provider',
  cache_control_injection_points: '`promptCaching` of a model marks what is cached',
  pass_through_endpoints: '`passthrough` of a model allows more paths',
  aws_role_name: '`auth.aws.assumeRole` of a model',
  aws_session_name: '`auth.aws.assumeRole` of a model',
  aws_profile_name: 'the default chain of AWS reads AWS_PROFILE',
  aws_web_identity_token: 'the default chain of AWS reads AWS_WEB_IDENTITY_TOKEN_FILE',
  vertex_credentials: 'Google credentials are found as by its own tools: GOOGLE_APPLICATION_CREDENTIALS',
  azure_ad_token: 'a token of Microsoft Entra ID is taken from the machine',
  tenant_id: 'a token of Microsoft Entra ID is taken from the machine',
  client_id: 'a token of Microsoft Entra ID is taken from the machine',
  client_secret: 'a token of Microsoft Entra ID is taken from the machine',
  categories:
    'contents are judged by `azureContentSafety`, `bedrockGuardrails` or a `webhook` (docs/guardrails.md)',
  pattern_redaction_format: 'a match becomes `<EMAIL_ADDRESS>` and the like, or `<masked>`',
  keyword_redaction_tag: 'a match becomes `<masked>`',
  include: 'import the other files with `--from`, too',
  request_timeout: `${ALL_MODELS}.timeout\``,
  user_header_name: USER,
  user_header_mappings: USER,
  cooldown_time: '`health.eviction.duration` of a model',
  hidden: 'no model is hidden from those who may call it: `allowedModels` of a key says who may',
  credential_info: 'it describes a credential',
  mcp_aliases: ONE_NAME,
  health_check_interval: 'models are judged by their calls: `health` of a model',
  background_health_checks: 'models are judged by their calls: `health` of a model',
};

/** As `REASONS`, for members of an MCP server. */
const REASONS_OF_SERVERS: Readonly<Record<string, string>> = {
  timeout: 'set for all servers alone: `mcp.policies.timeout`',
  alias: ONE_NAME,
  mcp_info: "names and logos are those of LiteLLM's pages, and calls of tools have no price",
  allow_all_keys: 'every key may use every server, unless `mcp.policies.mcpAuthorization` has rules',
};

/** Members of `model_info` that describe a model in LiteLLM's own lists. */
const DESCRIPTIONS: readonly string[] = [
  ...['id', 'mode', 'max_tokens', 'max_input_tokens', 'max_output_tokens', 'litellm_provider', 'version'],
  ...['description', 'supports_vision', 'supports_function_calling', 'supports_parallel_function_calling'],
  ...['supports_response_schema', 'supports_prompt_caching', 'supports_system_messages'],
  ...['supports_reasoning', 'order', 'base_model'],
];

/** Whether a member describes something, so that nothing is lost without it. */
const isDescription = (path: readonly (string | number)[]): boolean =>
  (path.at(-2) === 'model_info' && DESCRIPTIONS.includes(String(path.at(-1)))) ||
  (path[0] === 'mcp_servers' && path.length === 3 && path[2] === 'description') ||
  (path[0] === 'guardrails' && ['name', 'description'].includes(String(path[5])));

/** Whether a value has a limit somewhere inside, such as `default_team_settings: [{ max_budget: 1 }]`. */
export function hasCap(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasCap);
  return Object.entries(membersOf(value)).some(([key, inner]) => isCap(key) || hasCap(inner));
}

/** Sections of the file that the import reads. */
const SECTIONS: readonly string[] = [
  ...['model_list', 'credential_list', 'environment_variables', 'guardrails', 'mcp_servers'],
  ...['general_settings', 'litellm_settings', 'router_settings'],
];

/** Whether what a member does is lost without a trace: a misspelt section, and answers that were never those of a provider. */
export const isMisleading = (path: readonly (string | number)[]): boolean =>
  misspelt(path) !== undefined || path.at(-1) === 'mock_response';

/** The section that was meant by a key of the file. */
function misspelt([key, ...inner]: readonly (string | number)[]): string | undefined {
  if (inner.length > 0 || SECTIONS.includes(String(key))) return undefined;
  return nearest(String(key), SECTIONS);
}

/** The reason for a member from which nothing could be read. */
export const OTHER_TYPE = 'it has another type than expected: nothing was read from it';

/** Why a member is not imported. `isReplaced`: it has no effect in LiteLLM. */
export function reasonFor(
  path: readonly (string | number)[],
  value: unknown,
  isReplaced: boolean,
): { readonly reason: string; readonly isKnown: boolean } {
  if (isReplaced) return { reason: 'that of `router_settings` is used, as by LiteLLM', isKnown: true };
  if (isDescription(path)) return { reason: "it describes it in LiteLLM's own lists", isKnown: true };
  const key = String(path.at(-1));
  const section = misspelt(path);
  if (section !== undefined)
    return { reason: `nothing of it was read: write \`${section}\``, isKnown: false };
  const known =
    (path[0] === 'mcp_servers' ? entryIn(REASONS_OF_SERVERS, key) : undefined) ?? entryIn(REASONS, key);
  if (known !== undefined) return { reason: known, isKnown: true };
  const reason = isCap(key) || hasCap(value) ? NO_LIMIT : 'no counterpart, or set it by hand';
  return { reason, isKnown: false };
}
