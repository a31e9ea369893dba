import { type IncomingMessage, STATUS_CODES, request as sendHttp } from 'node:http';
import { request as sendHttps } from 'node:https';
import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import type { OwnRequest } from './curl.ts';

/** The response to a request that this command sent. */
export interface OwnReply {
  readonly status: number;
  /** Status as text, for example `200 OK`. */
  readonly words: string;
  readonly type: string;
  /** The beginning of the body, at most `LIMITS.traceReplyBytes` bytes. */
  readonly body: string;
}

/**
 * Sends the request to its URL, or to a local port with the URL's host as Host. Resolves when the response has begun;
 * `body` of the result grows until the response ends, and is truncated at its limit.
 *
 * @throws CommandError with exit name `unreachable`
 */
export function sendOwn(
  own: OwnRequest,
  port: number | undefined,
  signal: AbortSignal,
): Promise<{ reply(): OwnReply; ended: Promise<void> }> {
  const { url, method, headers, body } = own;
  const isTls = url.protocol === 'https:' && port === undefined;
  const target = port === undefined ? url.host : `127.0.0.1:${port}`;
  return new Promise((resolve, reject) => {
    const outgoing = (isTls ? sendHttps : sendHttp)({
      method,
      host: port === undefined ? url.hostname.replace(/^\[|\]$/g, '') : '127.0.0.1',
      port: port ?? (url.port === '' ? (isTls ? 443 : 80) : Number(url.port)),
      path: `${url.pathname}${url.search}`,
      headers: headersOf(own, headers, body),
      agent: false,
      signal,
    });
    outgoing.on('response', (response) => resolve(read(response)));
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'ECONNREFUSED' ? 'nothing listens there' : escapeControls(error.message);
      reject(
        new CommandError(
          'unreachable',
          `the request could not be sent to ${target}: ${why}`,
          'is it a port of the gateway, not of its admin server?',
        ),
      );
    });
    outgoing.end(body);
  });
}

function headersOf({ url }: OwnRequest, headers: readonly string[], body: Buffer | undefined): string[] {
  const has = (wanted: string): boolean =>
    headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === wanted);
  return [
    ...(has('host') ? [] : ['host', url.host]),
    ...(has('accept') ? [] : ['accept', '*/*']),
    ...(has('user-agent') ? [] : ['user-agent', 'agctl']),
    ...(body === undefined || has('content-length') ? [] : ['content-length', String(body.length)]),
    ...headers,
  ];
}

function read(response: IncomingMessage): { reply(): OwnReply; ended: Promise<void> } {
  const parts: Buffer[] = [];
  let size = 0;
  response.on('data', (part: Buffer) => {
    if (size < LIMITS.traceReplyBytes) parts.push(part.subarray(0, LIMITS.traceReplyBytes - size));
    size += part.length;
  });
  const status = response.statusCode ?? 0;
  return {
    reply: () => ({
      status,
      words: `${status} ${STATUS_CODES[status] ?? ''}`.trim(),
      type: response.headers['content-type'] ?? '',
      body: Buffer.concat(parts).toString('utf8'),
    }),
    ended: new Promise((resolve) => {
      response.once('close', resolve);
      response.on('error', () => undefined);
    }),
  };
}
