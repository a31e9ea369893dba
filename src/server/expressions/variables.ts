import { GATEWAY } from '../config/dump/names.ts';
import type { Exchange } from '../kernel/request-context.ts';
import type { LlmCall } from '../llm/log-fields.ts';
import type { RequestSpan } from '../observe/otlp/span.ts';
import type { Tracer } from '../observe/trace/tracer.ts';
import { HeadersView } from './cel/headers-view.ts';
import type { MemberOf, Root } from './cel/roots.ts';
import { Timestamp } from './cel/time.ts';
import { CelStruct, toCel } from './cel/values.ts';

/** Finds the value of a root variable; null while it has none. */
export interface Lookup {
  (root: string): unknown;
  /** Set while somebody watches the request: who is told, and how to read a variable without keeping it. */
  watched?: Watched;
  /** Set when the request is recorded. */
  span?: RequestSpan;
}

interface Watched {
  readonly tracer: Tracer;
  readonly exchange: Exchange;
  peek(root: string): unknown;
}

const REQUEST = ['request', 'source', 'jwt', 'apiKey', 'extauthz', 'proxy', 'backend'] as const;

/** The root variables that each kind of place in the configuration has. */
export const PLACES = {
  /** Policies of the request phase. */
  request: REQUEST,
  /** `extAuthz` metadata: `response` is the authorization service's reply. */
  authorizationReply: [...REQUEST, 'response'],
  /** Health of a model: `response` is the provider's. */
  providerReply: [...REQUEST, 'llmRequest', 'response'],
  mcpAuthorization: [...REQUEST, 'mcp'],
  /** LLM transformations and the headers of request webhooks. */
  llmRequest: [...REQUEST, 'llmRequest'],
  /** Headers of response webhooks. */
  llmResponse: REQUEST,
  /** Whether a request is recorded as a span: before any policy has run. */
  sampling: REQUEST,
  /** Which requests to trace: as they came in, before they are admitted. */
  traceFilter: ['request', 'source'],
  /** Access-log fields and filter: everything, once the response has ended. */
  log: [...REQUEST, 'response', 'mcp', 'llm'],
} as const satisfies Readonly<Record<string, readonly Root[]>>;

export type Place = keyof typeof PLACES;

/** Roots that grow while a request is handled, with what is known of them: built anew each time. */
const GROWING: ReadonlySet<string> = new Set(['proxy', 'backend'] satisfies Root[]);

/** Variables of a request. Most roots are built when first read and kept; `overrides` come first. */
export function lookupIn(x: Exchange, overrides?: Readonly<Record<string, unknown>>): Lookup {
  const lookup: Lookup = (root) => {
    if (overrides !== undefined && root in overrides) return overrides[root];
    return GROWING.has(root) ? variableOf(root, x) : x.variable(root, valueFor(root));
  };
  if (x.span !== undefined) lookup.span = x.span;
  if (x.trace !== undefined) {
    const peek = (root: string): unknown =>
      overrides !== undefined && root in overrides ? overrides[root] : variableOf(root, x);
    lookup.watched = { tracer: x.trace, exchange: x, peek };
  }
  return lookup;
}

/** The value of a root variable at this moment; it is not kept. */
export function variableOf(root: string, x: Exchange): unknown {
  return valueFor(root)(x) ?? null;
}

function valueFor(root: string): (x: Exchange) => unknown {
  return Object.hasOwn(VALUES, root) ? VALUES[root as Root] : nothing;
}

const nothing = (): null => null;

const VALUES: Readonly<Record<Root, (x: Exchange) => unknown>> = {
  request: (x) => new RequestView(x),
  source: (x) => new SourceView(x),
  // Claims and metadata are plain JSON: converted once, since integers must be CEL ints.
  jwt: (x) => toCel(x.jwt ?? null),
  apiKey: (x) => toCel(x.apiKey ?? null),
  extauthz: (x) => toCel(x.extauthz ?? null),
  proxy: (x) =>
    toCel({
      gateway: { name: GATEWAY.name, namespace: GATEWAY.namespace },
      listener: { name: x.listener },
      route: { name: x.route ?? null },
    } satisfies Members<'proxy'>),
  backend: (x) => toCel({ name: x.endpoint ?? null, protocol: x.protocol } satisfies Members<'backend'>),
  response: (x) =>
    x.reply === undefined
      ? null
      : new ResponseView(x.reply.status, x.reply.headers.raw, () => x.responseBody?.()),
  mcp: (x) => toCel(mcpVariables(x)),
  llm: (x) => toCel(x.llm === undefined ? null : llmVariables(x.llm)),
  llmRequest: (x) => toCel(x.llm?.request ?? null),
};

/** Values of what is declared in `cel/roots.ts`: all of it and nothing else, so that its reference is true. */
type Members<R extends Root> = Readonly<Record<MemberOf<R>, unknown>>;

/** The end of a `switch` over declared members: the compiler sees to it that none is left. */
function undeclared(_name: never): undefined {
  return undefined;
}

/** The request as expressions see it: after admission, before or after the policies that changed its headers. */
class RequestView extends CelStruct {
  readonly #x: Exchange;

  constructor(x: Exchange) {
    super();
    this.#x = x;
  }

  field(name: MemberOf<'request'>): unknown {
    const x = this.#x;
    switch (name) {
      case 'method':
        return x.method;
      case 'path':
        return x.path;
      case 'pathAndQuery':
        return x.path + x.query;
      case 'uri':
        return `http://${x.host}${x.path}${x.query}`;
      case 'host':
        return x.host;
      case 'scheme':
        return 'http';
      case 'version':
        return `HTTP/${x.request.httpVersion}`;
      case 'headers':
        return x.headersView;
      case 'body':
        return x.body.captured;
      case 'bodyPrefix':
        return x.body.prefix;
      case 'startTime':
        return moment(x.startedAt);
      case 'endTime':
        return x.endedAt === undefined ? undefined : moment(x.endedAt);
      default:
        return undeclared(name);
    }
  }

  fields(): readonly string[] {
    return ['method', 'path', 'pathAndQuery', 'uri', 'host', 'scheme', 'version', 'headers', 'startTime'];
  }
}

/** Milliseconds since 1970 as a CEL timestamp. */
function moment(milliseconds: number): Timestamp {
  return new Timestamp(BigInt(milliseconds) * 1_000_000n);
}

class SourceView extends CelStruct {
  readonly #x: Exchange;

  constructor(x: Exchange) {
    super();
    this.#x = x;
  }

  field(name: MemberOf<'source'>): unknown {
    switch (name) {
      case 'address':
      case 'rawAddress':
        return this.#x.sourceAddress;
      case 'port':
      case 'rawPort':
        return this.#x.sourcePort;
      default:
        return undeclared(name);
    }
  }

  fields(): readonly string[] {
    return ['address', 'port'];
  }
}

/** A response as expressions see it: the client's, or the reply of an authorization service. */
export class ResponseView extends CelStruct {
  readonly #code: number;
  readonly #rawHeaders: readonly string[];
  readonly #body: () => Uint8Array | string | undefined;
  #headers: HeadersView | undefined;

  constructor(code: number, rawHeaders: readonly string[], body: () => Uint8Array | string | undefined) {
    super();
    this.#code = code;
    this.#rawHeaders = rawHeaders;
    this.#body = body;
  }

  field(name: MemberOf<'response'>): unknown {
    switch (name) {
      case 'code':
        return this.#code;
      case 'headers':
        this.#headers ??= new HeadersView(this.#rawHeaders);
        return this.#headers;
      case 'body':
      case 'bodyPrefix':
        return this.#body();
      default:
        return undeclared(name);
    }
  }

  fields(): readonly string[] {
    return ['code', 'headers'];
  }
}

function mcpVariables({ mcp }: Exchange): object | null {
  if (mcp === undefined) return null;
  const { method, sessionId, target, tool, prompt, resourceUri, task } = mcp;
  const item = (name: string | undefined): { name: string; target: string | undefined } | undefined =>
    name === undefined ? undefined : { name, target };
  const called = { arguments: mcp.toolArguments, result: mcp.toolResult, error: mcp.toolError };
  return defined<Members<'mcp'>>({
    methodName: method,
    sessionId,
    tool: tool === undefined ? undefined : defined({ ...item(tool), ...called }),
    prompt: item(prompt),
    resource: item(resourceUri),
    task: item(task),
  });
}

function llmVariables(call: LlmCall): object {
  const { usage, firstTokenAfter, lastTokenAfter, cost } = call;
  const completion = call.streamed?.completion ?? call.completion;
  const perToken =
    firstTokenAfter === undefined || lastTokenAfter === undefined || !usage?.output
      ? undefined
      : (lastTokenAfter - firstTokenAfter) / usage.output / 1000;
  return defined<Members<'llm'>>({
    streaming: call.streaming,
    requestModel: call.requestModel,
    responseModel: call.responseModel,
    provider: call.provider,
    inputTokens: usage?.input,
    outputTokens: usage?.output,
    totalTokens: usage === undefined ? undefined : usage.input + usage.output,
    cachedInputTokens: usage?.cachedInput,
    cacheCreationInputTokens: usage?.cacheWrite,
    reasoningTokens: usage?.reasoning,
    usageEstimated: call.estimated,
    inputAudioTokens: usage?.inputAudio,
    outputAudioTokens: usage?.outputAudio,
    timeToFirstToken: firstTokenAfter === undefined ? undefined : firstTokenAfter / 1000,
    timePerOutputToken: perToken,
    prompt: call.prompt,
    completion: completion?.texts,
    toolCalls: completion?.toolCalls,
    params: call.request,
    cost: cost?.parts,
    costRates: cost?.rates,
  });
}

function defined<M extends Readonly<Record<string, unknown>>>(record: M): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
