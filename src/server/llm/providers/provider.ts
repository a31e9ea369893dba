import type { CompileContext } from '../../kernel/compile-context.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { AwsScope } from '../../kernel/upstreams.ts';
import type { LocalSession } from '../../transport/web-socket/local-web-socket.ts';
import type { ProviderFormatKey } from '../formats/index.ts';
import type { LlmCall } from '../llm-call.ts';
import type { ProviderParams } from './params.ts';

/** A kind of LLM provider. */
export interface ProviderKind {
  readonly key: string;
  /** Alternative names in configurations. */
  readonly aliases: readonly string[];
  /** Name in telemetry and price catalogs. */
  readonly telemetryName: string;
  /** Default of `baseUrl`: origin and path prefix of the API. Undefined: the configuration must set one. */
  readonly baseUrl: string | undefined;
  /**
   * Wire formats of its API, preferred first. Chats in other formats are translated; other calls are rejected. Without
   * effect if there is an `answer`, which gets every call.
   */
  readonly formats: readonly ProviderFormat[];
  /** Model name sent to the provider, unless `params.model` is set. */
  readonly model?: string;
  /** Whether it gets credentials from the machine if `params.apiKey` is not set. */
  readonly hasAmbientCredentials?: boolean;
  /** How `params.apiKey` is sent. Default: `Authorization: Bearer`. */
  readonly keyHeader?: (
    apiKey: string,
    format: ProviderFormatKey | undefined,
  ) => readonly [name: string, value: string];
  /** Headers of every call that has none of that name, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Compiles what depends on `params`: addresses with a region, formats of a model, credentials. Reports missing and
   * wrong parameters, and then returns undefined.
   */
  readonly connect?: (
    params: ProviderParams,
    context: CompileContext,
    options: ConnectOptions,
  ) => Connection | undefined;
  /** Members of `params` that it reads beside `apiKey`, `model` and `baseUrl`. */
  readonly params?: readonly (keyof ProviderParams)[];
  /** Whether `promptCaching` has an effect on requests to it. */
  readonly hasPromptCaching?: boolean;
  /** Generates the response locally instead of calling a server. */
  readonly answer?: (ctx: RequestContext, call: LlmCall, body: Readonly<Record<string, unknown>>) => Reply;
  /** Generates the messages of a realtime session locally. */
  readonly openSession?: (model: string) => LocalSession;
}

export interface ProviderFormat {
  readonly type: ProviderFormatKey;
  /**
   * Path of the call at the provider, instead of that of the format below `baseUrl`. A function gets the base path,
   * without a trailing slash, and may return a query.
   */
  readonly path?: string | ((call: PathInput) => string);
  /** Whether a model has the format, by its name at the provider. Default: all have. */
  readonly supports?: (model: string) => boolean;
  /** Whether chats for a model that need a translation get this format, even if it is not the first. By the name at the provider. */
  readonly isPreferredFor?: (model: string) => boolean;
}

export interface PathInput {
  readonly basePath: string;
  /** The path that the call has below `basePath`, such as `/v1/chat/completions` with `basePath` `/v1`. */
  readonly path: string;
  /** Model name at the provider. */
  readonly model: string;
  readonly stream: boolean;
}

/** What a model sets beside `params`. */
export interface ConnectOptions {
  /** A guardrail at the provider itself, which checks prompts and answers. */
  readonly guardrail?: { readonly identifier: string; readonly version: string } | undefined;
  /** Whether the model has credentials of its own (`auth`), so that the provider looks for none. */
  readonly hasAuth?: boolean;
}

/** A provider as one model of the configuration uses it. Members replace those of the kind. */
export interface Connection {
  readonly baseUrl?: string;
  readonly formats?: readonly ProviderFormat[];
  /**
   * Completes a request, after all other changes to it: signatures, tokens that expire. It may change everything but
   * the method. Called for every attempt. Throws an `AppError` without credentials.
   */
  readonly prepare?: (request: OutgoingRequest, signal: AbortSignal) => void | Promise<void>;
  /** Whether `prepare` adds credentials, so that those of the client are removed. */
  readonly hasCredentials?: boolean;
  /** If it is a service of AWS. */
  readonly aws?: AwsScope;
}

/** A request as it will be sent to a provider. */
export interface OutgoingRequest {
  readonly method: string;
  /** Model name at the provider; undefined for realtime sessions. */
  readonly model?: string;
  /** Wire format of the body; undefined on `passthrough` paths of unknown format. */
  readonly format: ProviderFormatKey | undefined;
  /** Host and port. */
  readonly authority: string;
  /** Path and query. */
  path: string;
  readonly headers: HeaderList;
  body: string | Buffer | null;
  /** Whether a policy adds the credentials, after `prepare`. */
  readonly isAuthorized?: boolean;
}

export function defineProvider(kind: ProviderKind): ProviderKind {
  return kind;
}

/** The header that carries a key of calls of this format. */
export function keyHeader(
  kind: ProviderKind,
  apiKey: string,
  format: ProviderFormatKey | undefined,
): readonly [name: string, value: string] {
  return kind.keyHeader?.(apiKey, format) ?? ['authorization', `Bearer ${apiKey}`];
}

/** Adds the gateway's key, and the headers that the provider needs with every call, unless the request has them. */
export function addProviderHeaders(
  headers: HeaderList,
  kind: ProviderKind,
  apiKey: string | undefined,
  format: ProviderFormatKey | undefined,
): void {
  if (apiKey !== undefined) headers.append(...keyHeader(kind, apiKey, format));
  for (const [name, value] of Object.entries(kind.headers ?? {}))
    if (!headers.has(name)) headers.append(name, value);
}
