import { Slot } from './slot.ts';

/** Who the caller is, as `issuer subject` or a hash of its key. Set by the policy that authenticated it; sessions are bound to it. */
export const principal = new Slot<string>();

/** Patterns of the models that the caller's key may use. Absent: all of them. */
export const allowedModels = new Slot<readonly string[]>();

/**
 * Claims of the caller's validated token. Set by the policy that validates it; rules, logs and spans read it.
 */
export const jwtClaims = new Slot<Readonly<Record<string, unknown>>>();

/** Gives the `WWW-Authenticate` challenge for a rule on scopes (its source) that the token does not satisfy. */
export const scopeChallenge = new Slot<(ruleSource: string) => string>();

/** Query parameters in which this request carried credentials: logs leave them out. */
export const credentialParameters = new Slot<ReadonlySet<string>>();
