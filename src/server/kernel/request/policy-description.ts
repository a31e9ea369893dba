// What is known of a policy without a request: its names in traces, and whom it lets in.

/** Names of a policy in traces, as upstream has them: `kind` in events, `stage` of a snapshot after the policy. */
export interface PolicyTraceNames {
  readonly kind: string;
  readonly stage: string;
  /** The stage of a snapshot after its response phase; `response headers` by default. */
  readonly responseStage?: string;
  /** In the list of applied policies; the key by default. */
  readonly listedAs?: string;
  /** The policy applies to the backend call: it is listed then, and not when the route is selected. */
  readonly isBackendPolicy?: boolean;
  /** The policy checks content: traces omit what it has not checked. */
  readonly guardsContent?: boolean;
}

/** What a policy that finds out who calls can say without a request. */
export interface Identification {
  /** The root variable of expressions that has what it finds out. */
  readonly variable: string;
  /** What it takes from requests, as in "asks for a key". */
  readonly takes: string;
  /** Whether it rejects requests without that. */
  readonly isRequired: boolean;
  /** Callers that it knows by name, with the values that the variable would have. Rejects with an `AppError` if a database fails. */
  callers?(): Promise<readonly KnownCaller[]>;
  /** If it takes tokens (JWT): the claims of a valid one. Throws or rejects with why a token is not valid, or cannot be checked. */
  claimsOf?(token: string): ClaimsOfToken | Promise<ClaimsOfToken>;
  /** Whether it lets requests with a token that is not valid through. */
  readonly ignoresInvalid?: boolean;
}

type ClaimsOfToken = Readonly<Record<string, unknown>>;

export interface KnownCaller {
  readonly name: string;
  readonly value: unknown;
}
