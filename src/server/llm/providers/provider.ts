import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import type { LlmCall } from '../call.ts';

/** A kind of LLM provider. All speak the OpenAI wire format; they differ in where they are. */
export interface ProviderKind {
  readonly key: string;
  /** Other names that configurations use for it. */
  readonly aliases: readonly string[];
  /** Name in telemetry and price catalogs. */
  readonly telemetryName: string;
  /** Origin and path prefix of its API, when the configuration has no `baseUrl`; undefined when it must have one. */
  readonly baseUrl: string | undefined;
  /** Answers here instead of over the network. */
  readonly answer?: (ctx: RequestContext, call: LlmCall, body: Readonly<Record<string, unknown>>) => Reply;
}

export function defineProvider(kind: ProviderKind): ProviderKind {
  return kind;
}
