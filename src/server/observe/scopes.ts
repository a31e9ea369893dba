import {
  type DocumentedScope,
  NO_BODY,
  NOT_CALLED,
  NOT_ENDED,
  REQUEST_ROOTS,
} from '../expressions/scopes.ts';

/** Whether a request is recorded as a span: before any policy has run. */
export const samplingScope: DocumentedScope = {
  name: 'sampling',
  roots: REQUEST_ROOTS,
  unavailable: {
    ...NOT_ENDED,
    ...NOT_CALLED,
    ...NO_BODY,
    jwt: 'no policy has run',
    apiKey: 'no policy has run',
    extauthz: 'no policy has run',
    'proxy.route.name': 'the route is not known',
  },
  doc: 'When a request has arrived and its route is found, before its policies.',
  keys: ['tracing.randomSampling', 'tracing.clientSampling'],
};

/** Which requests to trace: as they came in, before they are validated. */
export const traceFilterScope: DocumentedScope = {
  name: 'traceFilter',
  roots: ['request', 'source'],
  unavailable: { ...NOT_ENDED, ...NO_BODY },
  doc: 'When a request has arrived: as it came, and without its body.',
  keys: [],
  also: '`--match` of `agctl proxy trace`, and the expression of `/debug/trace`',
};

/** Access-log fields and filter: everything, once the response has ended. */
export const logScope: DocumentedScope = {
  name: 'log',
  roots: [...REQUEST_ROOTS, 'response', 'mcp', 'llm'],
  unavailable: {},
  doc: 'When the response has ended.',
  keys: [
    'frontendPolicies.accessLog.add',
    'frontendPolicies.accessLog.filter',
    'config.metrics.fields.add',
    'config.tracing.fields.add',
    'frontendPolicies.tracing.attributes',
    'frontendPolicies.tracing.filter',
  ],
};
