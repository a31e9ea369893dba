import { type IncomingMessage, STATUS_CODES, request as sendHttp } from 'node:http';
import { request as sendHttps } from 'node:https';
import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import type { AdminAddress } from './address.ts';

/** One request to an admin server. */
export interface AdminRequest {
  readonly method: 'GET' | 'POST';
  /** With its query, as in `/logging?level=debug`. */
  readonly path: string;
  /** Silence in ms that ends it; 0 for none. */
  readonly silence?: number;
  readonly signal?: AbortSignal;
}

/** What the server answered, whole. */
export interface AdminAnswer {
  readonly type: string;
  readonly body: Buffer;
}

/**
 * Sends a request and reads the whole answer, which must be a 200.
 *
 * @throws CommandError: unreachable (nobody there, silent, something else answers), refused (401, 403),
 *   usage (400: the server does not accept the input), not_ok (it failed)
 */
export async function ask(address: AdminAddress, request: AdminRequest): Promise<AdminAnswer> {
  const response = await open(address, request);
  return {
    type: response.headers['content-type'] ?? '',
    body: await readBody(address, response, LIMITS.dumpBytes),
  };
}

/** The same, with the body left to the caller as a stream. */
export async function open(address: AdminAddress, request: AdminRequest): Promise<IncomingMessage> {
  const response = await answerTo(address, request);
  if (response.statusCode === 200) return response;
  throw refusal(address, request, response, await readBody(address, response, LIMITS.traceReplyBytes, true));
}

function answerTo(address: AdminAddress, request: AdminRequest): Promise<IncomingMessage> {
  const { method, path, silence = LIMITS.adminAnswer, signal } = request;
  return new Promise((resolve, reject) => {
    const outgoing = (address.isTls ? sendHttps : sendHttp)(
      {
        method,
        path: address.prefix + path,
        ...(address.socketPath === undefined
          ? { host: address.host, port: address.port }
          : { socketPath: address.socketPath, headers: { host: 'localhost' } }),
        agent: false,
        ...(signal === undefined ? {} : { signal }),
      },
      resolve,
    );
    outgoing.on('error', (error: NodeJS.ErrnoException) => reject(unreachable(address, error)));
    if (silence > 0) outgoing.setTimeout(silence, () => outgoing.destroy(new SilenceError(silence)));
    outgoing.end();
  });
}

class SilenceError extends Error {
  readonly code = 'SILENCE';
  readonly milliseconds: number;

  constructor(milliseconds: number) {
    super(`no answer within ${milliseconds / 1000} s`);
    this.milliseconds = milliseconds;
  }
}

async function readBody(
  address: AdminAddress,
  response: IncomingMessage,
  most: number,
  isCut = false,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      size += part.length;
      parts.push(part);
      if (size > most) {
        response.destroy();
        if (isCut) break;
        throw new CommandError(
          'unreachable',
          `${address.shown} sends more than ${most / 1024 / 1024} MiB`,
          'save it with curl, and look at the file',
        );
      }
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw unreachable(address, error as NodeJS.ErrnoException, 'broke off in the middle of its answer');
  }
  return Buffer.concat(parts);
}

const START =
  'start the gateway (agctl serve -f gateway.yaml), or name its admin server: --admin <host:port>, as config.adminAddr says';

/** What a failed connection means, with the address and the next step. */
export function unreachable(
  { shown }: Pick<AdminAddress, 'shown'>,
  error: NodeJS.ErrnoException,
  otherwise = 'closed the connection without an answer',
): CommandError {
  if (error instanceof CommandError) return error;
  const fail = (message: string, help = START): CommandError =>
    new CommandError('unreachable', message, help);
  // One address tried in two families fails with one error around both.
  const code = error.code ?? (error as { errors?: NodeJS.ErrnoException[] }).errors?.[0]?.code ?? '';
  if (code === 'ECONNREFUSED') return fail(`no gateway at ${shown}: nothing listens there`);
  if (code === 'ENOENT') return fail(`no gateway at ${shown}: there is no such socket`);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return fail(
      `no gateway at ${shown}: the name is not known`,
      '--admin with a name or address that this machine can reach',
    );
  if (code === 'EACCES' || code === 'EPERM')
    return fail(`${shown} may not be opened by this user`, 'run as the user that the gateway runs as');
  if (code === 'SILENCE')
    return fail(
      `${shown} takes connections, but gives no answer (${error.message})`,
      'is it the admin server? config.adminAddr says its address',
    );
  if (code.startsWith('HPE_')) return notAnAdmin(shown, 'what answers there does not speak HTTP');
  if (/^(?:ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE)$/.test(code) || error.message === 'aborted')
    return fail(`${shown} ${otherwise}`, 'it may have stopped or crashed: see its log');
  return fail(`cannot reach ${shown}: ${escapeControls(error.message)}`);
}

/** Something else listens at the address. */
export function notAnAdmin(shown: string, why: string): CommandError {
  return new CommandError(
    'unreachable',
    `${shown} is not an admin server: ${why}`,
    'the admin server listens at config.adminAddr, by default 127.0.0.1:15000; the gateway ports do not offer it',
  );
}

function refusal(
  address: AdminAddress,
  { method, path }: AdminRequest,
  response: IncomingMessage,
  body: Buffer,
): CommandError {
  const status = response.statusCode ?? 0;
  const endpoint = path.replace(/\?.*/s, '');
  const said = firstLine(body);
  const words = `${status} ${STATUS_CODES[status] ?? ''}`.trim();
  if (status === 401 || status === 403)
    return new CommandError(
      'refused',
      `${address.shown} refuses: ${words}${said === '' ? '' : `, ${said}`}`,
      'an admin server on a loopback address takes requests for localhost only; something in front of it may want a sign-in',
    );
  if (status === 400)
    return new CommandError('usage', said === '' ? `${address.shown} answers ${words}` : said);
  if (status >= 500)
    return new CommandError(
      'not_ok',
      `${address.shown} failed: ${words}${said === '' ? '' : `, ${said}`}`,
      'see its log',
    );
  if (status === 409 || status === 429)
    return new CommandError(
      'not_ok',
      `${address.shown} is busy: ${said === '' ? words : said}`,
      'try again when the other one has ended',
    );
  return notAnAdmin(address.shown, `${method} ${endpoint} is ${words}`);
}

const SHOWN = 300;

/** The first line of an answer, safe to print; nothing of a web page. */
export function firstLine(body: Buffer): string {
  const text = body.toString('utf8').trim();
  if (/^<(?:!doctype|html)/i.test(text)) return '';
  const [line = ''] = text.split('\n');
  return escapeControls(line.trim().slice(0, SHOWN));
}
