import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import type { LlmCall } from '../call.ts';

/** A kind of LLM provider. All use the OpenAI wire format; they differ in their address. */
export interface ProviderKind {
  readonly key: string;
  /** Alternative names in configurations. */
  readonly aliases: readonly string[];
  /** Name in telemetry and price catalogs. */
  readonly telemetryName: string;
  /** Default of `baseUrl`: origin and path prefix of the API. Undefined: the configuration must set one. */
  readonly baseUrl: string | undefined;
  /** Generates the response locally instead of calling a server. */
  readonly answer?: (ctx: RequestContext, call: LlmCall, body: Readonly<Record<string, unknown>>) => Reply;
}

export function defineProvider(kind: ProviderKind): ProviderKind {
  return kind;
}
