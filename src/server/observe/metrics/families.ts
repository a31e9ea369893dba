import { counterFamily, type Family, type HistogramForm, histogramFamily } from './family.ts';
import type { Counter, Histogram } from './series.ts';

// Names, labels and buckets match upstream's dashboards, except for the prefix.

/** Without upstream's `route_rule`, which no configuration here has. */
const ROUTE_LABELS = ['bind', 'gateway', 'listener', 'route'] as const;
const HTTP_LABELS = ['backend', 'protocol', 'method', 'status', 'reason', ...ROUTE_LABELS];
const MINIMAL_LABELS = ['backend', ...ROUTE_LABELS];
const GEN_AI_LABELS = [
  'gen_ai_operation_name',
  'gen_ai_system',
  'gen_ai_request_model',
  'gen_ai_response_model',
  ...ROUTE_LABELS,
];
const MCP_LABELS = ['method', 'resource_type', 'server', 'resource', ...ROUTE_LABELS];
const CONNECTION_LABELS = ['bind', 'gateway', 'listener', 'protocol'];

const powers = (first: number, factor: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => Number((first * factor ** index).toPrecision(12)));

const TOKENS = powers(1, 4, 14);
const MODEL_SECONDS = powers(0.01, 2, 14);
const PER_TOKEN_SECONDS = [0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];
const FIRST_TOKEN_SECONDS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
const REQUEST_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80];
// 0.1 is ours: the alert AgctlSlow compares with it.
const PROCESSING_SECONDS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.25];
const CONNECT_SECONDS = [0.0005, 0.0015, 0.0043, 0.0126, 0.0368, 0.108, 0.316, 0.924, 2.71, 8];

export type Families = ReturnType<typeof createFamilies>;

/**
 * Creates every metric family that requests update, in the order in which they are printed. `custom`: names of the
 * labels added by `config.metrics`. `prefix`: first part of all names. `form`: that of all histograms.
 */
export function createFamilies(custom: readonly string[], prefix: string, form: HistogramForm) {
  const create = familiesNamed(prefix, form);
  const { guardrails, catalogLookups, ...llm } = llmFamilies(create, [...GEN_AI_LABELS, ...custom]);
  const { requests, connections, ...http } = httpFamilies(
    create,
    [...HTTP_LABELS, ...custom],
    [...MINIMAL_LABELS, ...custom],
  );
  const mcp = mcpFamilies(create, [...MCP_LABELS, ...custom]);
  // An increase is seen only from a value that was there before.
  const audit = auditFamilies(create);
  for (const sink of ['file', 'database']) audit.auditFailures.with([sink]);
  const lost = [
    audit.auditRefusalsOmitted,
    llm.budgetFailures,
    http.accessLogRecordsLost,
    http.metricPointsLost,
  ];
  for (const family of lost) family.with([]);
  return { ...llm, requests, guardrails, catalogLookups, connections, ...mcp, ...audit, ...http };
}

/** Creates families whose names start with `prefix`. */
const familiesNamed = (prefix: string, form: HistogramForm) => ({
  counter: (name: string, help: string, labels: readonly string[]): Family<Counter> =>
    counterFamily({ name: prefix + name, help }, labels),
  histogram: (
    name: string,
    help: string,
    labels: readonly string[],
    bounds: readonly number[],
  ): Family<Histogram> => histogramFamily({ name: prefix + name, help }, labels, bounds, form),
});

type Create = ReturnType<typeof familiesNamed>;

/** `labels`: those of LLM calls. */
function llmFamilies({ counter, histogram }: Create, labels: readonly string[]) {
  return {
    tokenUsage: histogram(
      'gen_ai_client_token_usage',
      'Number of tokens used per request',
      ['gen_ai_token_type', ...labels],
      TOKENS,
    ),
    cost: counter(
      'gen_ai_client_cost_usd',
      'Cost of LLM requests in US dollars, by the model cost catalog',
      labels,
    ),
    modelDuration: histogram(
      'gen_ai_server_request_duration',
      'Duration of LLM requests in seconds',
      labels,
      MODEL_SECONDS,
    ),
    perOutputToken: histogram(
      'gen_ai_server_time_per_output_token',
      'Time per output token of streamed LLM responses in seconds',
      labels,
      PER_TOKEN_SECONDS,
    ),
    firstToken: histogram(
      'gen_ai_server_time_to_first_token',
      'Time to the first token of streamed LLM responses in seconds',
      labels,
      FIRST_TOKEN_SECONDS,
    ),
    budgetCalls: counter(
      'budget_calls',
      'Total number of LLM calls with a budget: `allowed`, `refused`, or that could not be counted',
      ['budget', 'outcome'],
    ),
    budgetFailures: counter(
      'budget_database_failures',
      'Total number of times that the database of budgets has failed',
      [],
    ),
    guardrails: counter('guardrail_checks', 'Total number of guardrail checks', ['phase', 'action']),
    llmCache: counter('llm_cache', 'Total number of LLM calls of models with a cache: `hit` or `miss`', [
      'result',
    ]),
    catalogLookups: counter(
      'cost_catalog_lookups',
      'Total number of model cost catalog lookups by resolution status',
      ['status', ...labels],
    ),
  };
}

/** `labels`: those of a finished request; `minimal`: those of its processing time. */
function httpFamilies({ counter, histogram }: Create, labels: readonly string[], minimal: readonly string[]) {
  return {
    requests: counter('requests', 'Total number of HTTP requests', labels),
    connections: counter('downstream_connections', 'Total number of client connections', CONNECTION_LABELS),
    mirroredRequests: counter('mirrored_requests', 'Total number of requests selected by requestMirror', [
      'outcome',
    ]),
    policyCalls: counter(
      'policy_calls',
      'Total number of calls of the functions of policies in TypeScript: `pass`, `answer`, `deny` or `fail`',
      ['policy', 'function', 'outcome'],
    ),
    sharedStoreMisses: counter(
      'shared_store_misses',
      'Total number of operations on the shared store that were done without it, or rejected',
      ['use', 'outcome'],
    ),
    tlsReloads: counter(
      'tls_certificate_reloads',
      'Total number of times that changed certificates were read, by each listener and process that uses them: `failed` keeps the previous ones',
      ['file', 'result'],
    ),
    tlsFailures: counter(
      'tls_handshake_failures',
      'Total number of TLS handshakes of clients that failed: by a `certificate`, a `protocol` error, a `timeout`, or because the client `closed` the connection',
      ['reason'],
    ),
    accessLogRecordsLost: counter(
      'access_log_records_lost',
      'Access-log records that did not reach the OTLP collector',
      [],
    ),
    metricPointsLost: counter(
      'metric_points_lost',
      'Data points of metrics that did not reach the OTLP collector',
      [],
    ),
    responseBytes: counter('response_bytes', 'Total bytes of HTTP response bodies', labels),
    duration: histogram('request_duration_seconds', 'Duration of HTTP requests', labels, REQUEST_SECONDS),
    requestProcessing: histogram(
      'request_processing_seconds',
      'Time from the arrival of a request to the call to its backend',
      minimal,
      PROCESSING_SECONDS,
    ),
    responseProcessing: histogram(
      'response_processing_seconds',
      'Time from the response head of the backend to the response head sent to the client',
      minimal,
      PROCESSING_SECONDS,
    ),
    receivedBytes: counter(
      'downstream_received_bytes',
      'Total bytes received from clients',
      CONNECTION_LABELS,
    ),
    sentBytes: counter('downstream_sent_bytes', 'Total bytes sent to clients', CONNECTION_LABELS),
    connectDuration: histogram(
      'upstream_connect_duration_seconds',
      'Time to open a connection to an upstream',
      ['transport'],
      CONNECT_SECONDS,
    ),
    callDuration: histogram(
      'upstream_call_duration_seconds',
      'Time from a call to an upstream to its response head',
      ['kind', 'subtype'],
      REQUEST_SECONDS,
    ),
    unsolicited: counter(
      'upstream_unsolicited_responses',
      'Total number of connections to upstreams that were closed because of bytes that no request asked for',
      ['kind', 'subtype'],
    ),
  };
}

function auditFamilies({ counter }: Create) {
  return {
    auditFailures: counter(
      'audit_failures',
      'Total number of audited events that could not be written to the `file` or the `database`; the log has them',
      ['sink'],
    ),
    auditRefusalsOmitted: counter(
      'audit_refusals_omitted',
      'Total number of refused attempts that are not events of their own, because their callers were refused too often; other events count them',
      [],
    ),
  };
}

/** `labels`: those of MCP requests. */
function mcpFamilies({ counter }: Create, labels: readonly string[]) {
  return {
    mcpRequests: counter('mcp_requests', 'Total number of MCP requests', labels),
    mcpToolChanges: counter(
      'mcp_tool_changes',
      'Total number of tools whose definition has changed since it was pinned',
      ['server'],
    ),
  };
}
