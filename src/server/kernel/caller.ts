import { Slot } from './slot.ts';

/** Identity of the caller: `issuer subject`, or a hash of its key. Set by the authenticating policy; sessions are bound to it. */
export const principal = new Slot<string>();

/** Patterns of the models that the caller's key may use. All models if unset. */
export const allowedModels = new Slot<readonly string[]>();

/**
 * Claims of the caller's validated token. Set by the policy that validates it; rules, logs and spans read it.
 */
export const jwtClaims = new Slot<Readonly<Record<string, unknown>>>();

/** Returns the `WWW-Authenticate` challenge for a scope rule (its source text) that the token does not satisfy. */
export const scopeChallenge = new Slot<(ruleSource: string) => string>();

/** Query parameters that carried credentials in this request. Logs omit them. */
export const credentialParameters = new Slot<ReadonlySet<string>>();
