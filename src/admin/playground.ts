import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Readable, Transform } from 'node:stream';
import { messageOf } from '../core/errors.ts';
import { isRecord, jsonIn, textIn } from '../core/foreign.ts';
import { LIMITS } from '../core/limits.ts';
import { reachable } from '../server/config/plan/origin.ts';
import type { Gateway } from '../server/runtime/gateway.ts';
import { type OwnTls, ownTls } from './own-tls.ts';

/** A request that may be sent: to one of our ports, with headers that a client may set. */
export interface PlaygroundRequest {
  readonly host: string;
  readonly port: number;
  /** If the port expects TLS. */
  readonly tls: OwnTls | undefined;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readable;
}

interface Problem {
  readonly problem: string;
}

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']);

/** Headers that belong to the connection, or are computed here. */
const NOT_PASSED = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Validates a page's request. Only the ports of this gateway can be reached. */
export function readPlaygroundRequest(
  text: unknown,
  listeners: Gateway['listeners'],
): PlaygroundRequest | Problem {
  const value = jsonIn(textIn(text));
  if (!isRecord(value))
    return { problem: 'expected a JSON object with `port`, `method`, `path`, `headers` and `body`' };
  const { port, method = 'POST', path, headers = {}, body = '' } = value;
  const listener = listeners.find((each) => each.port === port);
  if (listener === undefined)
    return {
      problem: `port: only ports of this gateway can be reached (${listeners.map((each) => each.port).join(', ')})`,
    };
  if (typeof method !== 'string' || !METHODS.has(method))
    return { problem: `method: expected one of ${[...METHODS].join(', ')}` };
  if (typeof path !== 'string' || !/^\/[\x21-\x7e]*$/.test(path) || path.length > LIMITS.adminHeaderBytes)
    return { problem: 'path: expected a path such as /mcp, percent-encoded' };
  if (typeof body !== 'string') return { problem: 'body: expected a string' };
  const checked = readHeaders(headers);
  if ('problem' in checked) return { problem: String(checked['problem']) };
  const { gateway } = listener;
  const tls = ownTls(gateway.entrances, checked.headers['host']);
  if (tls !== undefined && 'problem' in tls) return tls;
  const host = reachable(gateway.plan.address);
  return { host, port: listener.port, tls, method, path, headers: checked.headers, body };
}

function readHeaders(headers: unknown): { readonly headers: Record<string, string> } | Problem {
  if (!isRecord(headers)) return { problem: 'headers: expected an object of strings' };
  const entries = Object.entries(headers);
  if (entries.length > LIMITS.playgroundHeaders)
    return { problem: `headers: at most ${LIMITS.playgroundHeaders} can be sent` };
  const checked: Record<string, string> = {};
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/.test(lower) || lower === '__proto__')
      return { problem: 'headers: a name has characters that are not allowed' };
    if (NOT_PASSED.has(lower)) return { problem: `headers: ${lower} cannot be set` };
    if (typeof value !== 'string' || !/^[\t\x20-\x7e]*$/.test(value))
      return { problem: `headers: the value of ${lower} must be a string of visible ASCII characters` };
    checked[lower] = value;
  }
  return { headers: checked };
}

/**
 * Sends the request. The response ends when the gateway ends it, when the page disconnects (`reader` closes), when it
 * is too long, or when `end` of the stream is called that `opened` gets, which returns what is called at the end.
 */
export function sendToGateway(
  { host, port, tls, method, path, headers, body }: PlaygroundRequest,
  reader: ServerResponse,
  opened: (stream: { end(): void }) => () => void,
): Promise<Answer | Problem> {
  return new Promise((resolve) => {
    const options = {
      host,
      port,
      method,
      path,
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      agent: false,
      maxHeaderSize: LIMITS.adminHeaderBytes,
    };
    const sent = tls === undefined ? httpRequest(options) : httpsRequest({ ...options, ...tls });
    const entry = { end: () => void sent.destroy() };
    const timer = setTimeout(
      () => sent.destroy(new Error('the request took too long')),
      LIMITS.playgroundTimeout,
    );
    const closed = opened(entry);
    reader.once('close', () => sent.destroy());
    sent.once('close', () => {
      clearTimeout(timer);
      closed();
      resolve({ problem: 'the connection was closed' });
    });
    sent.on('error', (error) => resolve({ problem: `the gateway did not answer: ${messageOf(error)}` }));
    sent.once('response', (response) => resolve(answerOf(response)));
    sent.end(body);
  });
}

function answerOf(response: IncomingMessage): Answer {
  let length = 0;
  const body = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      length += chunk.length;
      if (length <= LIMITS.playgroundReplyBytes) done(null, chunk);
      else {
        response.destroy();
        body.end();
        done();
      }
    },
  });
  response.on('error', (error) => body.destroy(error));
  response.pipe(body);
  const headers = Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(', ')]),
  );
  return { status: response.statusCode ?? 0, headers, body };
}
