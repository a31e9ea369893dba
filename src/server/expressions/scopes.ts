import type { ExpressionScope } from '../kernel/expression.ts';
import { foreignMember } from './cel/declarations.ts';
import { CERTIFICATE_MEMBERS } from './client-certificate.ts';

/** A scope with its documentation for `agctl-expressions(7)`. */
export interface DocumentedScope extends ExpressionScope {
  /** When its expressions are evaluated. */
  readonly doc: string;
  /** Path suffixes of the configuration keys that contain expressions of this scope. */
  readonly keys: readonly string[];
  /** Other uses of the scope. */
  readonly also?: string;
}

/** Variables of every request. Variables that a policy sets are null until the policy has run. */
export const REQUEST_ROOTS = [
  'request',
  'source',
  'destination',
  'env',
  'jwt',
  'basicAuth',
  'apiKey',
  'extauthz',
  'extproc',
  'metadata',
  'proxy',
  'backend',
] as const;

export const NOT_ENDED = { 'request.endTime': 'the request has not ended' } as const;
export const NOT_CALLED = { 'backend.name': 'no backend has been called' } as const;
export const NO_BODY = {
  'request.body': 'the body has not been read',
  'request.bodyPrefix': 'the body has not been read',
} as const;

/** Policies of the request phase. Its keys are the `requestExpressions` of the policies. */
export const requestScope: Omit<DocumentedScope, 'keys'> = {
  name: 'request',
  roots: REQUEST_ROOTS,
  unavailable: { ...NOT_ENDED, ...NOT_CALLED },
  doc: 'While the request is handled: values that a policy sets are available once it has run.',
};

/** `frontendPolicies.networkAuthorization`. */
export const networkScope: DocumentedScope = {
  name: 'network',
  roots: ['source'],
  unavailable: Object.fromEntries(
    Object.keys(CERTIFICATE_MEMBERS).map((name) => [`source.${name}`, 'the client has sent nothing yet']),
  ),
  doc: 'When a client has connected, before anything is read from it.',
  keys: ['frontendPolicies.networkAuthorization.rules'],
};

/** `frontendPolicies.networkExtAuthz`. */
export const connectionScope: DocumentedScope = {
  name: 'connection',
  roots: ['source', 'destination'],
  unavailable: {},
  doc: 'When a client has connected, with TLS if the listener has it, before a request is read.',
  keys: [
    'frontendPolicies.networkExtAuthz.protocol.http.path',
    'frontendPolicies.networkExtAuthz.protocol.http.addRequestHeaders',
    'frontendPolicies.networkExtAuthz.cache.key',
    'frontendPolicies.networkExtAuthz.cache.ttl',
  ],
};

/** The member at a path that is never set in a scope, with the reason; undefined if the path may be set. */
export function whyUnavailable(
  scope: ExpressionScope,
  path: string,
): { member: string; why: string } | undefined {
  const foreign = foreignMember(path.split('.'));
  if (foreign !== undefined) return { member: foreign, why: 'this gateway never sets it' };
  const found = Object.entries(scope.unavailable).find(([member]) => `${path}.`.startsWith(`${member}.`));
  return found && { member: found[0], why: found[1] };
}
