import { GATEWAY } from '../kernel/gateway-name.ts';
import { HeaderList } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { omitsOriginal } from '../kernel/request/shared-slots.ts';
import { Slot } from '../kernel/slot.ts';
import type { Declaration } from './cel/declarations.ts';
import { HeadersView } from './cel/headers-view.ts';
import { Duration, Timestamp } from './cel/time.ts';
import { CelStruct, toCel } from './cel/values.ts';
import { defined, defineVariable, type MemberOf, type Members } from './variable.ts';

const views = new Slot<HeadersView>();

/** Request headers for expressions. The view always reads the current list. */
export function headersView(ctx: RequestContext): HeadersView {
  return views.ensure(ctx, () => new HeadersView(ctx.headers.raw));
}

/** The response body that was recorded for expressions of the access log; it may be truncated. */
export const recordedResponseBody = new Slot<() => Uint8Array | string>();

const REQUEST = {
  type: 'map',
  doc: 'The request, after the policies that have run so far.',
  members: {
    method: { type: 'string', doc: 'HTTP method, such as `GET`.' },
    uri: { type: 'string', doc: 'Scheme, host, path and query, as a URL.' },
    host: { type: 'string', doc: 'Requested host in lower case, with the port if one was given.' },
    scheme: { type: 'string', doc: '`http`, or `https` on a listener with TLS.' },
    path: { type: 'string', doc: 'Canonical path without the query.' },
    pathAndQuery: { type: 'string', doc: 'Path and query, with its `?`.' },
    version: { type: 'string', doc: 'HTTP version, such as `HTTP/1.1`.' },
    headers: {
      type: 'map',
      doc: 'Header fields by name (case-insensitive): a string, or a list of strings if the header has several lines.',
    },
    body: { type: 'bytes', doc: 'The whole body; absent if it is larger than `maxBufferSize`.' },
    bodyPrefix: { type: 'bytes', doc: 'The beginning of the body, up to `maxBufferSize`.' },
    startTime: { type: 'timestamp', doc: 'When the request arrived.' },
    endTime: { type: 'timestamp', doc: 'When the response ended: only in the log.' },
  },
} as const satisfies Declaration;

const PROXY = {
  type: 'map',
  doc: 'The gateway, listener and route of the request.',
  members: {
    gateway: {
      type: 'map',
      doc: 'The gateway.',
      members: {
        name: {
          type: 'string',
          doc: 'Always `default`; `proxy.listener.name` is the name in the configuration.',
        },
        namespace: { type: 'string', doc: 'Always `default`.' },
      },
    },
    listener: {
      type: 'map',
      doc: 'The listener.',
      members: { name: { type: 'string', doc: 'Its name.' } },
    },
    route: {
      type: 'map',
      doc: 'The route.',
      members: { name: { type: 'string', doc: 'Its name; null before a route is selected.' } },
      elsewhere: ['namespace', 'kind', 'rule'],
    },
    requestProcessingDuration: {
      type: 'duration',
      doc: 'Time from the arrival of the request to the call of the backend; for the log only, like the next two.',
    },
    upstreamDuration: { type: 'duration', doc: 'Time until the response headers of the backend.' },
    responseProcessingDuration: { type: 'duration', doc: 'Time from these to the response headers.' },
  },
  elsewhere: ['bind'],
} as const satisfies Declaration;

const BACKEND = {
  type: 'map',
  doc: 'The backend of the request.',
  members: {
    name: { type: 'string', doc: 'Address of the called upstream; null before the call.' },
    protocol: { type: 'string', doc: '`http`, `mcp` or `llm`.' },
    type: { type: 'string', doc: '`static`, `mcp` or `ai`.' },
  },
} as const satisfies Declaration;

const RESPONSE = {
  type: 'map',
  doc: 'The response to the client or, in `extAuthz`, of the authorization service.',
  members: {
    code: { type: 'int', doc: 'HTTP status.' },
    headers: { type: 'map', doc: 'Header fields by name, as in `request.headers`.' },
    body: { type: 'string or bytes', doc: 'The recorded part of the body.' },
    bodyPrefix: { type: 'string or bytes', doc: 'The same as `body`.' },
    grpcStatus: { type: 'int', doc: 'The header `grpc-status` of a gRPC response without messages.' },
  },
} as const satisfies Declaration;

/** Default case of a `switch` over declared members: the compiler reports missing members. */
function undeclared(_name: never): undefined {
  return undefined;
}

/** The request in expressions, after request validation and the changes of the policies that have run. */
class RequestView extends CelStruct {
  readonly #ctx: RequestContext;

  constructor(ctx: RequestContext) {
    super();
    this.#ctx = ctx;
  }

  field(name: MemberOf<typeof REQUEST>): unknown {
    const ctx = this.#ctx;
    switch (name) {
      case 'method':
        return ctx.method;
      case 'path':
        return ctx.path;
      case 'pathAndQuery':
        return ctx.path + ctx.query;
      case 'uri':
        return `${ctx.client.scheme}://${ctx.host}${ctx.path}${ctx.query}`;
      case 'host':
        return ctx.host;
      case 'scheme':
        return ctx.client.scheme;
      case 'version':
        return `HTTP/${ctx.request.httpVersion}`;
      case 'headers':
        return headersView(ctx);
      case 'body':
        return omitsOriginal(ctx) ? undefined : ctx.body.captured;
      case 'bodyPrefix':
        return omitsOriginal(ctx) ? undefined : ctx.body.prefix;
      case 'startTime':
        return moment(ctx.timings.startedAt);
      case 'endTime':
        return ctx.timings.endedAt === undefined ? undefined : moment(ctx.timings.endedAt);
      default:
        return undeclared(name);
    }
  }

  fields(): readonly string[] {
    return ['method', 'path', 'pathAndQuery', 'uri', 'host', 'scheme', 'version', 'headers', 'startTime'];
  }
}

/** Converts a Unix time in ms to a CEL timestamp. */
function moment(milliseconds: number): Timestamp {
  return new Timestamp(BigInt(milliseconds) * 1_000_000n);
}

/** A time span in ms as a CEL duration. */
function between(from: number | undefined, to: number | undefined): Duration | undefined {
  if (from === undefined || to === undefined) return undefined;
  return new Duration(BigInt(Math.round((to - from) * 1_000_000)));
}

const BACKEND_TYPES = { http: 'static', mcp: 'mcp', llm: 'ai' } as const;

/** A response in expressions: the response to the client, or that of an authorization service. */
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

  field(name: MemberOf<typeof RESPONSE>): unknown {
    switch (name) {
      case 'code':
        return this.#code;
      case 'headers':
        this.#headers ??= new HeadersView(this.#rawHeaders);
        return this.#headers;
      case 'body':
      case 'bodyPrefix':
        return this.#body();
      case 'grpcStatus': {
        const { status } =
          /^(?<status>\d{1,2})$/.exec(new HeaderList(this.#rawHeaders).get('grpc-status') ?? '')?.groups ??
          {};
        return status === undefined ? undefined : BigInt(status);
      }
      default:
        return undeclared(name);
    }
  }

  fields(): readonly string[] {
    return ['code', 'headers'];
  }
}

export const requestVariable = defineVariable('request', REQUEST, (ctx) => new RequestView(ctx));

export const proxyVariable = defineVariable(
  'proxy',
  PROXY,
  (ctx) => {
    const { started, called, answered, replied } = ctx.timings;
    return toCel(
      defined<Members<typeof PROXY>>({
        gateway: { name: GATEWAY.name, namespace: GATEWAY.namespace },
        listener: { name: ctx.listener },
        route: { name: ctx.route ?? null },
        requestProcessingDuration: between(started, called),
        upstreamDuration: between(called, answered),
        responseProcessingDuration: between(answered, replied),
      }),
    );
  },
  { isLive: true },
);

export const backendVariable = defineVariable(
  'backend',
  BACKEND,
  ({ endpoint, protocol }) =>
    toCel({ name: endpoint ?? null, protocol, type: BACKEND_TYPES[protocol] } satisfies Members<
      typeof BACKEND
    >),
  { isLive: true },
);

export const responseVariable = defineVariable('response', RESPONSE, (ctx) =>
  ctx.reply === undefined
    ? null
    : new ResponseView(ctx.reply.status, ctx.reply.headers.raw, () => recordedResponseBody.get(ctx)?.()),
);
