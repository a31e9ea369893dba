import {
  type DocumentedScope,
  NO_BODY,
  NOT_CALLED,
  NOT_ENDED,
  REQUEST_ROOTS,
} from '../expressions/scopes.ts';

/** Expressions that decide whether a request is recorded as a span. Evaluated before any policy. */
export const samplingScope: DocumentedScope = {
  name: 'sampling',
  roots: REQUEST_ROOTS,
  unavailable: {
    ...NOT_ENDED,
    ...NOT_CALLED,
    ...NO_BODY,
    jwt: 'no policy has run',
    basicAuth: 'no policy has run',
    apiKey: 'no policy has run',
    extauthz: 'no policy has run',
    extproc: 'no policy has run',
    metadata: 'no policy has run',
    'proxy.route.name': 'the route is not known',
  },
  doc: 'After a request is routed, before its policies run.',
  keys: ['tracing.randomSampling', 'tracing.clientSampling'],
};

/** Expressions that select requests to trace. Evaluated on the raw request, before validation. */
export const traceFilterScope: DocumentedScope = {
  name: 'traceFilter',
  roots: ['request', 'source'],
  unavailable: { ...NOT_ENDED, ...NO_BODY },
  doc: 'When a request arrives: on the raw request, without its body.',
  keys: [],
  also: '`--match` of `agctl proxy trace`, and the expression of `/debug/trace`',
};

/** Expressions of the access log, metrics and spans. Evaluated after the response ends, when every variable is set. */
export const logScope: DocumentedScope = {
  name: 'log',
  roots: [...REQUEST_ROOTS, 'response', 'mcp', 'extMcp', 'mcpGuardrails', 'llm'],
  unavailable: {},
  doc: 'After the response ends.',
  keys: [
    'frontendPolicies.accessLog.add',
    'frontendPolicies.accessLog.filter',
    'frontendPolicies.accessLog.database.add',
    'frontendPolicies.accessLog.otlp.fields.add',
    'frontendPolicies.accessLog.otlp.filter',
    'config.metrics.fields.add',
    'config.tracing.fields.add',
    'frontendPolicies.tracing.attributes',
    'frontendPolicies.tracing.filter',
  ],
};
