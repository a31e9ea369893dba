import type { Place } from '../expressions/variables.ts';

/** Where expressions of one place are written. */
export interface PlaceKeys {
  readonly doc: string;
  /** Ends of the paths of configuration keys: the keys themselves, or what holds the expressions. */
  readonly keys: readonly string[];
  /** Where else. */
  readonly also?: string;
}

/** Every key of a configuration that takes an expression, by what the expression may read there. */
export const EXPRESSION_KEYS: Readonly<Record<Place, PlaceKeys>> = {
  request: {
    doc: 'While the request is handled: values that a policy sets are there once it has run.',
    keys: [
      'policies.authorization.rules',
      'policies.localRateLimit[].key',
      'policies.apiKey.location.expression',
      'policies.mcpAuthentication.authorizationLocation.expression',
      'policies.extAuthz.protocol.http.path',
      'policies.extAuthz.protocol.http.addRequestHeaders',
      'policies.directResponse.bodyExpression',
      'policies.directResponse.headers',
    ],
  },
  sampling: {
    doc: 'When a request has arrived and its route is found, before its policies.',
    keys: ['tracing.randomSampling', 'tracing.clientSampling'],
  },
  authorizationReply: {
    doc: 'When external authorization has answered: `response` is its reply.',
    keys: [
      'policies.extAuthz.metadata',
      'policies.extAuthz.protocol.http.metadata',
      'policies.extAuthz.protocol.http.redirect',
    ],
  },
  mcpAuthorization: {
    doc: 'For each tool, prompt or resource that is listed or used.',
    keys: ['policies.mcpAuthorization.rules'],
  },
  llmRequest: {
    doc: 'For each call of a model, before it is made.',
    keys: [
      'llm.models[].transformation',
      'llm.virtualModels[].routing.conditional.targets[].when',
      'guardrails.request[].webhook.headers',
    ],
  },
  providerReply: {
    doc: 'When a provider has answered: `response` is its reply, without the body.',
    keys: ['llm.models[].health.unhealthyExpression'],
  },
  llmResponse: {
    doc: 'When a model has answered, for its guardrails.',
    keys: ['guardrails.response[].webhook.headers'],
  },
  traceFilter: {
    doc: 'When a request has arrived: as it came, and without its body.',
    keys: [],
    also: '`--match` of `agctl proxy trace`, and the expression of `/debug/trace`',
  },
  log: {
    doc: 'When the response has ended.',
    keys: [
      'frontendPolicies.accessLog.add',
      'frontendPolicies.accessLog.filter',
      'config.metrics.fields.add',
      'config.tracing.fields.add',
      'frontendPolicies.tracing.attributes',
      'frontendPolicies.tracing.filter',
    ],
  },
};
