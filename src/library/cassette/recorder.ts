import { createHash, randomBytes } from 'node:crypto';
import { AppError, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Reply, RequestContext } from '../../server/kernel/request/request-context.ts';
import { Slot } from '../../server/kernel/slot.ts';
import type { Gateway } from '../../server/runtime/gateway.ts';
import type { PortEvents } from '../../server/runtime/port.ts';
import type { Runtime } from '../../server/runtime/runtime.ts';
import { factsOf } from '../facts.ts';
import type { RequestFacts } from '../request-facts.ts';
import { bodyOf } from './body.ts';
import type { CassetteFile } from './cassette-file.ts';
import { isLast } from './cut.ts';
import { EventReader } from './event-reader.ts';
import type { Body, RecordedExchange, RecordedFacts, RecordedResponse } from './format.ts';
import { RecordedBody } from './recorded-body.ts';
import { Redaction } from './redaction.ts';

/** A request that runs, with what is seen of its response. */
interface Taken {
  /** From `performance.now()`. */
  readonly began: number;
  readonly gateway: string;
  /** What the client has sent: policies change the headers of the context. */
  readonly headers: readonly (readonly [string, string])[];
  readonly target: string;
  /** Undefined if it is too large, or ended early. */
  content: Uint8Array | undefined;
  response: Seen | undefined;
}

/** What is seen of a response. */
interface Seen {
  readonly ms: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly isStream: boolean;
  /** Bytes of all chunks: those over the limit are not kept. */
  size: number;
  readonly chunks: { readonly ms: number; readonly bytes: Uint8Array }[];
}

const taken = new Slot<Taken>();

/** Records what clients of a gateway send and get. One that is not used costs nothing: the gateway does not know it. */
export class CassetteRecorder {
  readonly #file: CassetteFile;
  readonly #begun = Promise.withResolvers<void>();
  readonly #redaction = new Redaction();
  readonly #start = performance.now();
  /** Session ids are credentials. Nobody can compute one from its label. */
  readonly #salt = randomBytes(16);
  readonly #open = new Set<Promise<void>>();
  readonly #failed: (problem: string) => void;
  /** Why the file is not complete. */
  #failure: string | undefined;

  /** @param failed called once, as soon as something cannot be recorded, with the reason */
  constructor(file: CassetteFile, failed: (problem: string) => void = () => undefined) {
    this.#file = file;
    this.#failed = failed;
  }

  /** The gateway has started. */
  begin(listeners: Gateway['listeners']): void {
    this.#file.begin(listeners.map(({ gateway: { plan } }) => ({ name: plan.name, port: plan.port })));
    this.#begun.resolve();
  }

  /** Puts the recorder between the ports and the gateway. */
  readonly tap = (events: PortEvents): PortEvents => ({
    ...events,
    handle: async (ctx, active) => {
      const began = performance.now();
      const { headers, url = '/' } = ctx.request;
      const one: Taken = {
        began,
        gateway: active.gateway.plan.name,
        headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
        target: url,
        content: undefined,
        response: undefined,
      };
      taken.set(ctx, one);
      // If it ends early, the gateway finds that out too.
      await ctx.body.capture(LIMITS.cassetteBodyBytes).catch(() => undefined);
      // It has ended: nobody would end what began now.
      if (ctx.isAbandoned) throw new AppError('bad_request', { message: 'the request body ended early' });
      one.content = ctx.body.captured;
      return events.handle(ctx, active);
    },
    replied: (ctx, reply) => {
      events.replied(ctx, reply);
      const one = taken.get(ctx);
      if (one !== undefined) one.response = seen(reply, performance.now() - one.began, one.began);
    },
  });

  /** Called when a request has ended and everything is known of it. */
  readonly ended = (ctx: RequestContext, status: number, runtime: Runtime): void => {
    const one = taken.get(ctx);
    if (one === undefined) return;
    const written = this.#exchangeOf(ctx, one, status, runtime)
      .then(async (exchange) => {
        await this.#begun.promise;
        // Behind half a line, no other one can be read.
        if (exchange !== undefined && this.#failure === undefined) this.#file.add(exchange);
      })
      .catch((error: unknown) => {
        if (this.#failure !== undefined) return;
        this.#failure = messageOf(error);
        this.#failed(this.#incomplete());
      })
      .finally(() => this.#open.delete(written));
    this.#open.add(written);
  };

  /** Writes what has ended, and closes the file, which is none if the recording has not begun. Returns how many exchanges it has, undefined without a file. Rejects if something could not be written. */
  async close(): Promise<number | undefined> {
    this.#begun.resolve();
    await Promise.all(this.#open);
    this.#file.close();
    if (this.#failure !== undefined) throw new Error(this.#incomplete());
    return this.#file.count;
  }

  #incomplete(): string {
    return `${this.#file.path} is not complete: ${this.#failure}`;
  }

  async #exchangeOf(
    ctx: RequestContext,
    { began, gateway, headers, target, content, response }: Taken,
    status: number,
    runtime: Runtime,
  ): Promise<RecordedExchange | undefined> {
    // A WebSocket has no end that could be recorded as a response.
    if (status === 101) return undefined;
    const all = new Map(headers);
    this.#redaction.note(headers, target, runtime);
    const facts = factsOf(ctx, status, runtime);
    const isMcp = facts.protocol === 'mcp';
    const body = await requestBody(content, all);
    const session =
      all.get(SESSION) ?? response?.headers.find(([name]) => name.toLowerCase() === SESSION)?.[1];
    return {
      at: ms(began - this.#start),
      gateway,
      ...(session !== undefined && { session: this.#label(session) }),
      request: {
        method: ctx.requestedMethod,
        target: this.#redaction.target(originForm(target), runtime),
        headers: this.#redaction.headers(headers, runtime),
        ...given(this.#redaction.body(body, runtime)),
      },
      response: await this.#responseOf(
        response,
        ctx.response.headersSent ? sendable(status) : 0,
        cutBy(ctx, facts),
        isMcp,
        runtime,
      ),
      facts: recordedFacts(facts),
    };
  }

  async #responseOf(
    response: Seen | undefined,
    status: number,
    cut: RecordedResponse['cut'],
    isMcp: boolean,
    runtime: Runtime,
  ): Promise<RecordedResponse> {
    const end = cut === undefined ? {} : { cut };
    if (response === undefined)
      return {
        ms: 0,
        status,
        headers: {},
        ...(status !== 0 && { body: { omitted: 'the request was aborted' } }),
        ...end,
      };
    const headers = this.#redaction.headers(response.headers, runtime);
    const head = { ms: ms(response.ms), status, headers };
    if (response.size > LIMITS.cassetteBodyBytes)
      return { ...head, body: { omitted: `it is larger than ${LIMITS.cassetteBodyBytes} bytes` }, ...end };
    if (response.isStream) {
      const reader = new EventReader();
      for (const chunk of response.chunks) reader.read(chunk.bytes, ms(chunk.ms));
      // Ids refer to the session, and events that have nothing else say that it can be resumed: a recording has its own sessions.
      const events = isMcp
        ? reader.events.flatMap(({ id, ...event }) => (event.text === '' ? [] : [event]))
        : reader.events;
      const last = reader.events.at(-1);
      const isWhole = cut === 'client' && last !== undefined && isLast(last);
      return { ...head, events: this.#redaction.events(events, runtime), ...(isWhole ? {} : end) };
    }
    const bytes = Buffer.concat(response.chunks.map((chunk) => chunk.bytes));
    const fields = new Map(response.headers.map(([name, value]) => [name.toLowerCase(), value]));
    const body = await bodyOf({
      bytes,
      type: fields.get('content-type') ?? '',
      coding: fields.get('content-encoding') ?? '',
    });
    const isWhole = cut === 'client' && fields.get('content-length') === String(response.size);
    return { ...head, ...given(this.#redaction.body(body, runtime)), ...(isWhole ? {} : end) };
  }

  #label(session: string): string {
    return createHash('sha256').update(this.#salt).update(session).digest('hex').slice(0, 8);
  }
}

/** A higher status of an upstream counts as a failure of a server (RFC 9110 §15). */
const sendable = (status: number): number => (status > 599 ? 502 : status);

/** Who has ended a response that the client does not have whole: an error at its end may make it whole again. */
function cutBy({ response }: RequestContext, { cut, reason }: RequestFacts): RecordedResponse['cut'] {
  if (response.writableFinished) return undefined;
  const isFailure = reason === 'UpstreamFailure' || reason === 'Timeout';
  return isFailure || cut === 'upstream' ? 'server' : 'client';
}

const SESSION = 'mcp-session-id';

const given = (body: Body | undefined): { body?: Body } => (body === undefined ? {} : { body });

/** Absolute forms and asterisks have no path that could be replayed. */
const originForm = (target: string): string => (target.startsWith('/') ? target : '/');

async function requestBody(
  content: Uint8Array | undefined,
  headers: ReadonlyMap<string, string>,
): Promise<Body | undefined> {
  if (content === undefined)
    return { omitted: `it is larger than ${LIMITS.cassetteBodyBytes} bytes, or incomplete` };
  return bodyOf({
    bytes: content,
    type: headers.get('content-type') ?? '',
    coding: headers.get('content-encoding') ?? '',
  });
}

/** Begins to watch a reply, whose body may be replaced by one that shows what it writes. */
function seen(reply: Reply, after: number, began: number): Seen {
  const { raw } = reply.headers;
  const headers = raw.flatMap((name, at) => (at % 2 === 0 ? [[name, raw[at + 1] ?? ''] as const] : []));
  const field = (name: string) => headers.find((each) => each[0].toLowerCase() === name)?.[1] ?? '';
  const isStream =
    /^text\/event-stream\b/i.test(field('content-type')) &&
    /^(?:identity)?$/i.test(field('content-encoding'));
  const one: Seen = { ms: after, headers, isStream, size: 0, chunks: [] };
  const see = (chunk: Uint8Array): void => {
    one.size += chunk.byteLength;
    if (one.size > LIMITS.cassetteBodyBytes) one.chunks.length = 0;
    // The writer may use its buffer again.
    else one.chunks.push({ ms: performance.now() - began, bytes: Buffer.from(chunk) });
  };
  const { body } = reply;
  if (typeof body === 'string' || body instanceof Uint8Array) see(Buffer.from(body));
  else if (body !== undefined && 'attach' in body) reply.body = new RecordedBody(body, see);
  return one;
}

/** The facts that a recording has. */
const FACTS = [
  'protocol',
  'operation',
  'reason',
  'target',
  'tool',
  'provider',
  'usedModel',
  'inputTokens',
  'outputTokens',
  'costUsd',
] as const;

export const recordedFacts = (facts: RecordedFacts): RecordedFacts =>
  Object.fromEntries(FACTS.flatMap((name) => (facts[name] === undefined ? [] : [[name, facts[name]]])));

const ms = (duration: number): number => Math.max(0, Math.round(duration * 10) / 10);
