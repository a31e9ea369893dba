// Generated from the columns of the record of requests: npm run gen

/** What is known of a request that has ended. Secrets are redacted. */
export interface RequestFacts {
  /** When the request was received. */
  readonly time: Date;
  /** Milliseconds until the end of its response. */
  readonly durationMs: number;
  /** `http`, `mcp`, `llm` or `a2a`. */
  readonly protocol: string;
  /** Operation of an LLM call, method of an MCP message or A2A call, otherwise method of the request. */
  readonly operation: string;
  /** Name of the listener. */
  readonly listener: string;
  /** Name of the selected route. */
  readonly route?: string;
  /** Path that the client requested. */
  readonly path: string;
  /** Status of the response; 499 if the client left before it. */
  readonly status: number;
  /** The error that the client received, or that a provider or server reported. */
  readonly error?: string;
  /** The part of the gateway that answered, such as `Authorization`; absent if it was the upstream. */
  readonly reason?: string;
  /** Who ended a response before it was complete: `client`, `upstream` or `timeout`. */
  readonly cut?: string;
  /** Name of the API key. */
  readonly key?: string;
  /** Subject of the token, or user of the key. */
  readonly user?: string;
  /** Group or team of the key. */
  readonly group?: string;
  /** IP address of the client. */
  readonly client?: string;
  /** User agent of the client. */
  readonly userAgent?: string;
  /** Id of the OpenTelemetry trace, if the request is recorded for it. */
  readonly traceId?: string;
  /** Fields that `frontendPolicies.accessLog.database.add` names. */
  readonly added?: Readonly<Record<string, unknown>>;
  /** Name of the MCP target. */
  readonly target?: string;
  /** Name of the tool or prompt, or URI of the resource. */
  readonly tool?: string;
  /** Shortened session id. */
  readonly session?: string;
  /** Whether the client requested a stream. */
  readonly streamed?: true;
  /** Name of the provider. */
  readonly provider?: string;
  /** Model requested by the client. */
  readonly model?: string;
  /** Model that answered. */
  readonly usedModel?: string;
  /** Input tokens. */
  readonly inputTokens?: number;
  /** Input tokens written to the provider's cache. */
  readonly cacheWriteTokens?: number;
  /** Input tokens read from the provider's cache. */
  readonly cachedInputTokens?: number;
  /** Output tokens. */
  readonly outputTokens?: number;
  /** Reasoning tokens, which are among the output tokens. */
  readonly reasoningTokens?: number;
  /** Why the token counts are estimated; absent if they are reported. */
  readonly usageEstimated?: string;
  /** Milliseconds from the request to the first token. */
  readonly firstTokenMs?: number;
  /** Whether the answer was given before (`cache` of the model). */
  readonly cacheHit?: true;
  /** Cost in USD. */
  readonly costUsd?: number;
}
