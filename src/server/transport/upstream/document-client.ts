import { jsonIn, membersOf, stringIn, textIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { readJsonFile } from '../../kernel/files/json-file.ts';
import type { CallMeter } from '../../kernel/observer.ts';
import { createUpstream, type Upstream } from './upstream.ts';
import { explainUpstreamError } from './upstream-error.ts';

/** A JSON document and how long it may be used, in ms. */
export interface Document {
  readonly value: unknown;
  readonly lifetime: number;
}

/** A provider could not be reached, or did not answer in time. */
export class UnreachableError extends Error {}

/** Fetches JSON documents of one identity provider. Redirects are not followed. */
export class DocumentClient {
  readonly #upstreams = new Map<string, Upstream>();
  readonly #meter: CallMeter | undefined;

  constructor(meter?: CallMeter) {
    this.#meter = meter;
  }

  /** Fetches a JSON document of at most `limit` bytes. Rejects with the reason after a failure or any status but 200. */
  async fetch(url: string, limit: number): Promise<Document> {
    const { origin, pathname, search } = new URL(url);
    const { status, headers, body } = await this.send(
      url,
      { method: 'GET', path: pathname + search, headers: ['accept', 'application/json'] },
      limit,
    );
    if (status !== 200) throw new Error(`${origin}${pathname} answered ${status}${describeError(body)}`);
    const value = jsonIn(body.toString('utf8'));
    if (value === undefined) throw new Error(`${origin}${pathname} did not answer with JSON`);
    return { value, lifetime: lifetimeOf(headers['cache-control']) };
  }

  /**
   * Sends one request to the provider and reads the whole response. Rejects over `limit` bytes, and after
   * `LIMITS.providerTimeout`.
   */
  async send(
    url: string,
    request: { method: string; path: string; headers: readonly string[]; body?: Buffer },
    limit: number,
  ): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }> {
    const { origin } = new URL(url);
    const upstream = this.#upstreamOf(origin);
    try {
      const signal = AbortSignal.timeout(LIMITS.providerTimeout);
      const { statusCode, headers, body } = await upstream.request({
        ...request,
        headers: ['host', upstream.authority, ...request.headers],
        signal,
      });
      const coding = headers['content-encoding'];
      if (coding !== undefined && coding !== 'identity') {
        body.on('error', () => undefined).destroy();
        throw new Error(
          `${origin} answered with the content-encoding ${String(coding).slice(0, 100)}, which was not asked for`,
        );
      }
      const chunks: Buffer[] = [];
      let size = 0;
      const received: AsyncIterable<Buffer> = body;
      for await (const chunk of received) {
        chunks.push(chunk);
        size += chunk.length;
        if (size > limit) throw new Error(`${origin} answered with more than ${limit} bytes`);
      }
      if (statusCode < 200 || statusCode > 599)
        throw new Error(`${origin} answered with status ${statusCode}`);
      return { status: statusCode, headers, body: Buffer.concat(chunks, size) };
    } catch (error) {
      if (error instanceof Error && error.name === 'TimeoutError')
        throw new UnreachableError(`${origin} did not answer in time`);
      if (error instanceof Error && error.message.startsWith(origin)) throw error;
      throw new UnreachableError(`${origin} could not be reached: ${explainUpstreamError(error)}`);
    }
  }

  /** Sends what OAuth libraries hand to the `fetch` of browsers. */
  async fetchLike(
    url: string,
    { method = 'GET', headers, body }: RequestInit,
    limit: number,
  ): Promise<{ status: number; contentType: string; body: Buffer }> {
    const { pathname, search } = new URL(url);
    const fields = [...new Headers(headers)].flat();
    const request = { method, path: pathname + search, headers: fields };
    const sent = body == null ? request : { ...request, body: Buffer.from(String(body)) };
    const answer = await this.send(url, sent, limit);
    return {
      status: answer.status,
      contentType: textIn(answer.headers['content-type']),
      body: answer.body,
    };
  }

  /** At most `LIMITS.providerOrigins` are kept: servers name each other, and can name new ones each time. */
  #upstreamOf(origin: string): Upstream {
    const upstream =
      this.#upstreams.get(origin) ??
      createUpstream({ origin }, this.#meter === undefined ? {} : { meter: this.#meter });
    this.#upstreams.delete(origin);
    this.#upstreams.set(origin, upstream);
    const [oldest] = this.#upstreams;
    if (oldest !== undefined && this.#upstreams.size > LIMITS.providerOrigins) {
      this.#upstreams.delete(oldest[0]);
      void oldest[1].close();
    }
    return upstream;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.close()));
  }
}

/** Reads a document from a file. Like a remote one, it expires and is read again, so that the file can be replaced. */
export async function readDocument(file: string): Promise<Document> {
  return { value: readJsonFile(file, LIMITS.keySetBytes), lifetime: LIMITS.documentLifetime };
}

/** OAuth error of a provider's JSON answer, for the log: ` (HTTPS required)`. */
function describeError(body: Buffer): string {
  const { error, error_description: description } = membersOf(jsonIn(body.toString('utf8')));
  const text = stringIn(description) ?? stringIn(error);
  return text === undefined ? '' : ` (${text.slice(0, 100)})`;
}

/** `max-age` of Cache-Control (RFC 9111 §5.2.2.1), within bounds. */
function lifetimeOf(cacheControl: string | string[] | undefined): number {
  const seconds = /(?:^|[,\s])max-age=(\d{1,9})/i.exec(String(cacheControl ?? ''))?.[1];
  if (seconds === undefined) return LIMITS.documentLifetime;
  return Math.min(Math.max(Number(seconds) * 1000, LIMITS.documentLifetimeMin), LIMITS.documentLifetimeMax);
}
