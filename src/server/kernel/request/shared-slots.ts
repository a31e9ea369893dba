import { Slot } from '../slot.ts';
import type { RequestContext } from './request-context.ts';

// What one feature tells others of a request. Features do not import each other, so these slots belong to the kernel.

/** Identity of the caller: `issuer subject`, or a hash of its key. Set by the authenticating policy; sessions are bound to it. */
export const principal = new Slot<string>();

/** Name of a key that is known but not valid any more. Only for the log: the request is as good as one without a key. */
export const refusedKey = new Slot<string>();

/** Patterns of the models that the caller's key may use. All models if unset. */
export const allowedModels = new Slot<readonly string[]>();

/**
 * Claims of the caller's validated token. Set by the policy that validates it; rules, logs and spans read it.
 */
export const jwtClaims = new Slot<Readonly<Record<string, unknown>>>();

/** Path at which the browser of this request ends its session. Set by the policy that has let it in with one. */
export const signOutPath = new Slot<string>();

/** The caller's token itself, set with `jwtClaims`: the policy that validates it also removes it from the request. */
export const validatedToken = new Slot<string>();

/** Returns the `WWW-Authenticate` challenge for a scope rule (its source text) that the token does not satisfy. */
export const scopeChallenge = new Slot<(ruleSource: string) => string>();

/** Query parameters that carried credentials in this request. Logs omit them. */
export const credentialParameters = new Slot<ReadonlySet<string>>();

/** Names of query parameters, in lower case, that carry credentials somewhere in the configuration. Logs redact their values. */
export const configuredParameters = new Slot<ReadonlySet<string>>();

/**
 * Called with the sum of input and output tokens when a model call has ended. Set by policies that limit tokens. A call may
 * be charged with an estimate first; the last number is then the difference, which may be negative.
 */
export const tokenListeners = new Slot<((tokens: number) => void)[]>();

/**
 * Whether an expression of the access log, the metrics or the spans may read one of these dotted paths, such as
 * `request.body`. Features record payloads for the log only if one does.
 */
export const logReads = new Slot<{ reads(...paths: readonly string[]): boolean }>();

/** Set when guardrails have changed or rejected the content of the request. */
export const originalWithheld = new Slot<true>();

/** Whether expressions of the log must not see what the client sent, because guardrails have changed or rejected it. */
export const omitsOriginal = (ctx: RequestContext): boolean =>
  ctx.timings.endedAt !== undefined && originalWithheld.get(ctx) === true;

/** A secret that all workers share, for keys of features: `config.session.key`, or one that is generated at the start. */
export const processSecret = new Slot<{ value(): Buffer; readonly isConfigured: boolean }>();
/** A call of an agent (A2A), for the log. */
export interface A2aCall {
  readonly method: string;
  outcome?: 'success' | 'error' | 'unknown';
  /** Code of the JSON-RPC error. */
  errorCode?: number;
  taskState?: string;
}

export const a2aCall = new Slot<A2aCall>();

/** The request is one of an operator, who looks at the gateway: figures and records of traffic leave it out. */
export const operatorRequest = new Slot<true>();

/** How often the backend was called again for this request. */
export const retryAttempt = new Slot<number>();

/** Names of headers in which `backendAuth` of a route or backend has put credentials. */
export const placedHeaders = new Slot<Set<string>>();

/** Whether a credential is the gateway's own, or computed from that of the caller, who then has a part in its refusal. */
export type CredentialOrigin = 'gateway' | 'caller';

/** Whose the credential is that `backendAuth` of a route or backend has put into the request. */
export const credentialOrigin = new Slot<CredentialOrigin>();

/** Credential for the backend, instead of that of the client. */
export const backendKey = new Slot<string>();
