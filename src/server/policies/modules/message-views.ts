import { AppError } from '../../../core/errors.ts';
import { jsonIn } from '../../../core/foreign.ts';
import { rejectRepeatedMembers } from '../../kernel/json/repeated-members.ts';
import {
  type HeaderList,
  isHeaderValue,
  isSettableHeader,
  SETTABLE_HEADER,
} from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { PathMode } from '../../kernel/request/request-target.ts';
import { bodyForExpressions, holdBody, replaceBody } from '../../transport/upstream/held-body.ts';
import { setRequestPart } from '../rewrite/request-part.ts';
import type { PolicyHeaders, PolicyRequest, PolicyResponse } from './api.ts';

class Headers implements PolicyHeaders {
  readonly #list: HeaderList;

  constructor(list: HeaderList) {
    this.#list = list;
  }

  get(name: string): string | undefined {
    return this.#list.get(name);
  }

  has(name: string): boolean {
    return this.#list.has(name);
  }

  set(name: string, value: string): void {
    checkField(name, value);
    this.#list.set(name, value);
  }

  append(name: string, value: string): void {
    checkField(name, value);
    this.#list.append(name, value);
  }

  delete(name: string): void {
    if (isSettableHeader(name)) this.#list.delete(name);
  }

  *[Symbol.iterator](): Iterator<[string, string]> {
    // A copy: what is deleted meanwhile would make it skip the next one.
    const raw = [...this.#list.raw];
    for (let at = 0; at < raw.length; at += 2) yield [raw[at] ?? '', raw[at + 1] ?? ''];
  }
}

/** Code in JavaScript may set anything. */
function checkField(name: unknown, value: unknown): void {
  if (typeof name !== 'string' || !isSettableHeader(name))
    throw new TypeError(`${SETTABLE_HEADER}, found ${JSON.stringify(name)}`);
  if (typeof value !== 'string' || !isHeaderValue(value))
    throw new TypeError(`the header \`${name}\` cannot have this value: expected text without line breaks`);
}

export class RequestView implements PolicyRequest {
  readonly headers: PolicyHeaders;
  readonly #ctx: RequestContext;
  readonly #limit: number;
  readonly #paths: PathMode;

  constructor(ctx: RequestContext, limit: number, paths: PathMode) {
    this.#ctx = ctx;
    this.#limit = limit;
    this.#paths = paths;
    this.headers = new Headers(ctx.headers);
  }

  get method(): string {
    return this.#ctx.method;
  }

  set method(method: string) {
    this.#setPart('method', method);
  }

  get path(): string {
    return this.#ctx.path + this.#ctx.query;
  }

  set path(path: string) {
    this.#setPart('path', path);
  }

  get host(): string {
    return this.#ctx.host;
  }

  set host(host: string) {
    this.#setPart('host', host);
  }

  async bytes(): Promise<Uint8Array> {
    // A copy: it is changed by `setBody` only.
    return Buffer.from(await this.#ctx.body.read(this.#limit));
  }

  async text(): Promise<string> {
    return (await this.#ctx.body.read(this.#limit)).toString('utf8');
  }

  async json(): Promise<unknown> {
    const bytes = await this.#ctx.body.read(this.#limit);
    rejectRepeatedMembers({ captured: bytes, prefix: undefined });
    const value = jsonIn(bytes.toString('utf8'));
    if (value === undefined)
      throw new AppError('bad_request', { message: 'the request body is not valid JSON' });
    return value;
  }

  setBody(body: unknown): void {
    this.#ctx.body.replace(bytesOf(body));
    for (const name of ['content-length', 'content-encoding']) this.#ctx.headers.delete(name);
  }

  #setPart(part: keyof typeof PSEUDO_HEADERS, value: unknown): void {
    const name = PSEUDO_HEADERS[part];
    if (typeof value !== 'string' || !setRequestPart(this.#ctx, name, value, this.#paths))
      throw new TypeError(`\`${part}\` of a request cannot be ${JSON.stringify(value)}`);
  }
}

const PSEUDO_HEADERS = { method: ':method', path: ':path', host: ':authority' } as const;

export class ResponseView implements PolicyResponse {
  readonly headers: PolicyHeaders;
  readonly #ctx: RequestContext;
  readonly #reply: Reply;
  readonly #limit: number;

  constructor(ctx: RequestContext, reply: Reply, limit: number) {
    this.#ctx = ctx;
    this.#reply = reply;
    this.#limit = limit;
    this.headers = new Headers(reply.headers);
  }

  get status(): number {
    return this.#reply.status;
  }

  set status(status: number) {
    if (!Number.isInteger(status) || status < 200 || status > 599)
      throw new RangeError(`expected a status from 200 to 599, found ${String(status)}`);
    this.#reply.status = status;
  }

  async bytes(): Promise<Uint8Array | undefined> {
    // It may never end.
    if (/^text\/event-stream\b/i.test(this.#reply.headers.get('content-type') ?? '')) return undefined;
    await holdBody(this.#ctx, this.#reply, this.#limit);
    const body = bodyForExpressions(this.#ctx, this.#reply);
    return typeof body === 'string' ? Buffer.from(body) : body;
  }

  async text(): Promise<string | undefined> {
    const bytes = await this.bytes();
    return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  }

  async json(): Promise<unknown> {
    return jsonIn((await this.text()) ?? '');
  }

  setBody(body: unknown): void {
    if (typeof this.#reply.body === 'object' && 'takeOver' in this.#reply.body)
      throw new TypeError('the response is an upgraded connection, which has no body');
    replaceBody(this.#reply, bytesOf(body));
  }
}

/** A body of somebody's code: text, bytes, or a value that becomes JSON. @throws TypeError for anything else */
function bytesOf(body: unknown): Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body);
  if (body instanceof ArrayBuffer) return Buffer.from(body.slice());
  if (typeof body === 'string') return Buffer.from(body);
  const prototype: unknown = typeof body === 'object' && body !== null ? Object.getPrototypeOf(body) : null;
  const isPlain = prototype === null || prototype === Object.prototype || Array.isArray(body);
  const text: unknown = isPlain ? JSON.stringify(body) : undefined;
  if (typeof text !== 'string')
    throw new TypeError('expected a body: text, bytes, or a plain object, list or value that becomes JSON');
  return Buffer.from(text);
}
