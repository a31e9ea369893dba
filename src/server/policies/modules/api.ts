/** A policy of your own, in TypeScript or JavaScript. It needs at least one of its functions. */
export interface PolicyDefinition<Options = unknown> {
  /** Its name in messages, traces and metrics: letters, digits, `-` and `_`. */
  readonly name: string;
  /** Schema of `options`, of zod, Valibot, ArkType or any other library with Standard Schema. Without one, there are none. */
  readonly options?: OptionsSchema<Options>;
  /** Called for each request, where the policy `modules` runs. A response that it returns answers the request. */
  request?(request: PolicyRequest, context: PolicyContext<Options>): PolicyAnswer | Promise<PolicyAnswer>;
  /** Called for each response of a backend, before the response phase of other policies. */
  response?(response: PolicyResponse, context: PolicyContext<Options>): void | Promise<void>;
  /** Called for `tools/call`, `prompts/get` and `resources/read` that the rules allow, before they reach the server. They do not decide again. */
  mcpCall?(call: McpCall, context: PolicyContext<Options>): void | Promise<void>;
  /** Called for the answers to those, and for results of tasks. */
  mcpResult?(result: McpResult, context: PolicyContext<Options>): void | Promise<void>;
  /** Called for each call of a model that the caller's key allows, before the model is chosen. */
  llmCall?(call: LlmCall, context: PolicyContext<Options>): void | Promise<void>;
}

/** Nothing, or a response that answers the request. */
// biome-ignore lint/suspicious/noConfusingVoidType: functions without `return` are meant.
export type PolicyAnswer = void | Response;

/** What all functions of a policy get. */
export interface PolicyContext<Options = unknown> {
  /** As the schema returns them. */
  readonly options: Options;
  /** Name of the selected route; undefined at a gateway or listener. */
  readonly route: string | undefined;
  /** IP address of the client; empty if it is not known. */
  readonly address: string;
  /** Who calls, as the policies that authenticate have found out. */
  readonly caller: PolicyCaller;
  /** For the functions of this policy, while the same request is handled. */
  readonly state: Map<string, unknown>;
  /** Aborted when the client leaves, or when the time limit is over. */
  readonly signal: AbortSignal;
  /**
   * Refuses the request or call, by throwing. The client gets the message, in the form of its API.
   *
   * @param status Status of the response, 403 by default. MCP calls are answered with a JSON-RPC error instead.
   */
  deny(message: string, status?: number): never;
  /** Writes a line to the log of the gateway. */
  log(
    level: 'error' | 'warn' | 'info' | 'debug',
    message: string,
    fields?: Readonly<Record<string, unknown>>,
  ): void;
}

/** Who calls. */
export interface PolicyCaller {
  /** Claims of the validated token. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** `metadata` of the API key, with its name. */
  readonly key?: Readonly<Record<string, unknown>>;
  /** User of basic authentication. */
  readonly user?: string;
}

/** A request as the backend would get it. Changes take effect. */
export interface PolicyRequest {
  /** @throws TypeError when it is set to no method */
  method: string;
  /** Path and query, canonical. @throws TypeError when it is set to no path */
  path: string;
  /** Authority: host, and port if there is one. @throws TypeError when it is set to none */
  host: string;
  readonly headers: PolicyHeaders;
  /**
   * The body, decompressed.
   *
   * @throws what the client gets as status 413, if it is larger than `frontendPolicies.http.maxBufferSize`, or 415 or 400
   */
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  /** @throws what the client gets as status 400, also if a member is repeated, which a backend could read in another way */
  json(): Promise<unknown>;
  /** Replaces the body. Other values than text and bytes become JSON. */
  setBody(body: unknown): void;
}

/** A response as the client would get it. Changes take effect. */
export interface PolicyResponse {
  /** @throws RangeError when it is set to anything but 200 to 599 */
  status: number;
  readonly headers: PolicyHeaders;
  /** The body, decompressed; undefined if it is a stream of events, or larger than `frontendPolicies.http.maxBufferSize`. */
  bytes(): Promise<Uint8Array | undefined>;
  text(): Promise<string | undefined>;
  /** Undefined also if the body is not JSON. */
  json(): Promise<unknown>;
  /** Replaces the body. Other values than text and bytes become JSON. */
  setBody(body: unknown): void;
}

/** Fields of a message. Names are case-insensitive. */
export interface PolicyHeaders extends Iterable<readonly [name: string, value: string]> {
  /** The first value. */
  get(name: string): string | undefined;
  has(name: string): boolean;
  /** @throws TypeError for a name or value that no header can have, and for those that frame a message, such as `content-length` */
  set(name: string, value: string): void;
  /** @throws as `set` does */
  append(name: string, value: string): void;
  delete(name: string): void;
}

/** A call of an MCP server. What is changed in `arguments` takes effect. */
export interface McpCall {
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read';
  /** Name of the target. */
  readonly target: string;
  /** Name of the tool or prompt at the target, or URI of the resource. Empty for the result of a task. */
  readonly name: string;
  /** Empty for resources. */
  arguments: Record<string, unknown>;
}

/** The answer to a call of an MCP server. What is changed in `result` or `error` takes effect; neither can become the other. */
export interface McpResult extends Readonly<McpCall> {
  /** The result: `content`, `isError`, and `structuredContent`, which has the same again. Undefined if it is an error. */
  result: Record<string, unknown> | undefined;
  /** The JSON-RPC error. */
  error: Record<string, unknown> | undefined;
}

/** A call of a model. What is changed in `model` and `request` takes effect. */
export interface LlmCall {
  /** The wire format of the client, such as `completions`, `messages` or `generateContent`; undefined on paths of `passthrough`. */
  readonly format: string | undefined;
  /** The requested model; undefined if the request names none. Another name chooses among the configured models, like `modelAliases`. */
  model: string | undefined;
  /** The request of the client in its wire format. Empty if it is not JSON, and then changes are an error. */
  readonly request: Record<string, unknown>;
}

/** A schema of any library with Standard Schema, version 1 (https://standardschema.dev). */
export interface OptionsSchema<Output> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    validate(value: unknown): OptionsResult<Output> | Promise<OptionsResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** What a schema says of options. */
export type OptionsResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly OptionsIssue[] };

export interface OptionsIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
