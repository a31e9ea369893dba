import { entryIn, isRecord, textIn } from '../foreign.ts';
import { type AnyMessage, recordsOf } from './read-event.ts';

/** The kind of an event, in one or two words. */
const LABELS: Readonly<Record<string, string>> = {
  requestStarted: 'request',
  requestSnapshot: 'snapshot',
  responseSnapshot: 'snapshot',
  bodySnapshot: 'body',
  cel: 'cel',
  routeSelection: 'route',
  policySelection: 'policies',
  policy: 'policy',
  policyEvent: 'policy',
  traceSampling: 'tracing',
  authorizationResult: 'authz',
  backendCallStart: 'backend',
  backendCallResult: 'backend',
  llmRouteResolved: 'llm',
  llmRequestDetected: 'llm',
  llmStreamingTranslation: 'llm',
  requestFinished: 'done',
  message: 'note',
};

export function labelOf({ type }: AnyMessage): string {
  return entryIn(LABELS, type) ?? type;
}

const PHASES: Readonly<Record<string, string>> = {
  listenerFrontend: 'listener',
  frontend: 'listener',
  subBackend: 'sub-backend',
  inlineBackend: 'inline backend',
};

/** Summarizes an event in one line. Its texts come from the sender and must be escaped before printing. */
export function summaryOf(message: AnyMessage): string {
  const summary = entryIn(SUMMARIES, message.type);
  return summary === undefined ? compact(withoutType(message)) : summary(message);
}

const SUMMARIES: Readonly<Record<string, (message: AnyMessage) => string>> = {
  requestStarted: () => 'request started',
  requestSnapshot: ({ stage }) => textIn(stage),
  responseSnapshot: ({ stage }) => textIn(stage),
  bodySnapshot: ({ stage, truncated }) => `${textIn(stage)} body${truncated === true ? ' (cut)' : ''}`,
  cel: ({ expr, result }) => `${textIn(expr)} => ${resultText(result)}`,
  routeSelection: routeSummary,
  policySelection: ({ phase, effectivePolicy }) => {
    const names = effectivePolicies(effectivePolicy);
    return `${entryIn(PHASES, textIn(phase)) ?? textIn(phase)}: ${names.length === 0 ? 'none' : names.join(', ')}`;
  },
  policy: (message) => {
    const { result } = message;
    const { type, reason, details } = isRecord(result) ? result : {};
    const name = policyName(message);
    return type === 'skip' ? `${name} skipped: ${textIn(reason)}` : `${name}: ${textIn(details)}`;
  },
  policyEvent: ({ kind, details }) =>
    `${textIn(kind)}: ${typeof details === 'string' ? details : compact(details)}`,
  traceSampling: ({ decision }) => textIn(decision),
  authorizationResult: authorizationSummary,
  backendCallStart: ({ target, backendName, protocol }) =>
    ['calls', target, backendName, protocol].filter((part) => typeof part === 'string').join(' '),
  backendCallResult: ({ target, status, error }) => [textIn(target), outcome(status, error)].join(' ').trim(),
  requestFinished: ({ status, error, detail }) =>
    [outcome(status, error), textIn(detail)].filter((part) => part !== '').join('; ') || 'request finished',
  llmRouteResolved: ({ provider, routeType }) => `${textIn(provider)} ${textIn(routeType)}`,
  llmRequestDetected: ({ provider, requestModel, inputFormat, upstreamRouteType, nativeFormat, streaming }) =>
    [
      textIn(provider),
      `model ${textIn(requestModel)}`,
      `${textIn(inputFormat)} as ${textIn(upstreamRouteType) || textIn(nativeFormat) || 'it is'}`,
      streaming === true ? 'streaming' : '',
    ]
      .filter((part) => part !== '')
      .join(', '),
  llmStreamingTranslation: ({ provider, streamFormat }) =>
    `${textIn(provider)} stream ${textIn(streamFormat)}`,
  message: ({ message }) => textIn(message),
};

function routeSummary({ selectedRoute, evaluatedRoutes }: AnyMessage): string {
  const count = Array.isArray(evaluatedRoutes) ? evaluatedRoutes.length : 0;
  return typeof selectedRoute === 'string'
    ? `selected ${selectedRoute} (${count} evaluated)`
    : `no route selected (${count} evaluated)`;
}

function authorizationSummary({ rules, result, reason, item }: AnyMessage): string {
  const verdict = result === 'allow' ? 'allowed' : result === 'deny' ? 'denied' : textIn(result);
  const about = isRecord(item) ? ` ${textIn(item['kind'])} ${textIn(item['name'])}` : '';
  if (typeof reason === 'string' && reason !== '') return `${verdict}${about}: ${reason}`;
  const decided = recordsOf(rules).findIndex((rule) => rule['decided'] === true);
  if (decided !== -1)
    return `${verdict}${about} by rules[${decided}] ${textIn(recordsOf(rules)[decided]?.['name'])}`;
  const count = (mode: string): number =>
    recordsOf(rules).filter((rule) => rule['mode'] === mode && rule['matched'] === true).length;
  return `${verdict}${about} (${count('allow')} allow, ${count('deny')} deny, ${count('require')} require matches)`;
}

function outcome(status: unknown, error: unknown): string {
  return [
    typeof status === 'number' ? String(status) : '',
    typeof error === 'string' && error !== '' ? error : '',
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** Names of the policies in effect. Upstream lists every existing policy; those that are not configured are null. */
export function effectivePolicies(effective: unknown): string[] {
  if (!isRecord(effective)) return [];
  return Object.entries(effective)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name]) => camel(name));
}

const KINDS: Readonly<Record<string, string>> = { extAuth: 'extAuthz' };

/** The name of a policy in the configuration, from its name in events (`local_rate_limit`, `ext_auth`). */
function camel(kind: string): string {
  const name = kind.replace(/[_ ](\w)/g, (_, letter: string) => letter.toUpperCase());
  return entryIn(KINDS, name) ?? name;
}

/** The name of the policy that a message concerns. */
export function policyName({ type, policy, kind }: AnyMessage): string {
  if (typeof policy === 'string') return policy;
  return type === 'authorizationResult' ? 'authorization' : camel(textIn(kind));
}

/** The result of an expression in one line. */
export function resultText(result: unknown): string {
  const error = isRecord(result) ? result['error'] : undefined;
  return typeof error === 'string' ? `error: ${error}` : compact(result);
}

export function compact(value: unknown): string {
  return JSON.stringify(value) ?? 'null';
}

function withoutType({ type: _, ...rest }: AnyMessage): unknown {
  return rest;
}
