import { type IncomingMessage, STATUS_CODES, request as sendHttp } from 'node:http';
import { request as sendHttps } from 'node:https';
import { NOT_RECORDED } from '../../admin/not-recorded.ts';
import { READ_ONLY } from '../../admin/read-only.ts';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { elementsOf, errorCode, jsonIn, membersOf, parseJson, stringIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import type { AdminAddress } from './address.ts';

/** One request to an admin server. */
export interface AdminRequest {
  readonly method: 'GET' | 'POST';
  /** Path with query, as in `/logging?level=debug`. */
  readonly path: string;
  /** Accepted content type. */
  readonly accept?: string;
  readonly body?: string;
  /** Timeout for silence of the server, in ms; 0 for none. */
  readonly silence?: number;
  readonly signal?: AbortSignal;
}

/** A complete response of the server. */
export interface AdminAnswer {
  readonly type: string;
  readonly body: Buffer;
}

/**
 * Sends a request and reads the whole response, whose status must be 200.
 *
 * @throws CommandError with exit name `unreachable` (nothing listens, timeout, or another kind of server), `refused`
 * (401, 403), `usage` (400: the server rejects the input) or `not_ok` (the server failed, or cannot do it in its state)
 */
export async function ask(address: AdminAddress, request: AdminRequest): Promise<AdminAnswer> {
  const response = await open(address, request);
  return {
    type: response.headers['content-type'] ?? '',
    body: await readBody(address, response, LIMITS.dumpBytes),
  };
}

/** Like `ask`, but leaves the body to the caller as a stream. */
export async function open(address: AdminAddress, request: AdminRequest): Promise<IncomingMessage> {
  await tellWhichGateway(address);
  const response = await answerTo(address, request);
  const missing = response.headers[NOT_RECORDED];
  if (missing !== undefined)
    address.warn?.write(
      `warning: the gateway could not write this to its audit (${escapeControls(String(missing))}): its log has the event, and says why\n`,
    );
  if (response.statusCode === 200) return response;
  throw refusal(address, request, response, await readBody(address, response, LIMITS.traceReplyBytes, true));
}

const told = new WeakSet<AdminAddress>();

/**
 * Prints once which gateway answers at an address, if the address asks for that, or if it is of another configuration than was
 * meant. Nothing about servers that do not say.
 */
export async function tellWhichGateway(address: AdminAddress): Promise<void> {
  const { tell, meant, warn } = address;
  if ((tell === undefined && meant === undefined) || told.has(address)) return;
  told.add(address);
  const gateway = await identityAt(address);
  if (gateway === undefined) return;
  const another = anotherThanMeant(address, gateway);
  if (another !== undefined) warn?.write(`warning: ${another}: --admin <host:port> asks another\n`);
  else tell?.write(`# ${address.shown} is the gateway of ${gateway.shown}\n`);
}

/** That a gateway has another configuration than the one whose gateway is meant; undefined if it does not, or nobody knows. */
export function anotherThanMeant(
  { shown, meant }: AdminAddress,
  { configPath, pid }: RunningGateway,
): string | undefined {
  if (meant === undefined || configPath === undefined || configPath === meant) return undefined;
  return `${shown} is the gateway of ${escapeControls(configPath)} (pid ${pid}), not that of ${escapeControls(meant)}`;
}

/** In ms: this only adds to what a command does. */
const IDENTITY_WITHIN = 1000;

/** The gateway that answers at an address, as `gateway.yaml (pid 4711)`; undefined if none does. Safe to print. */
export const gatewayAt = async (address: AdminAddress): Promise<string | undefined> =>
  (await identityAt(address))?.shown;

/** A gateway that runs. */
export interface RunningGateway {
  /** As `gateway.yaml (pid 4711)`, safe to print. */
  readonly shown: string;
  /** Its configuration file, as its command line names it. */
  readonly config: string;
  /** Its absolute path, links resolved; undefined for standard input, and if the gateway is of a version that does not tell. */
  readonly configPath: string | undefined;
  readonly pid: number;
  /** Its ports for requests. */
  readonly ports: readonly number[];
  /** Its ports for metrics and readiness; undefined if it is of a version that does not tell. */
  readonly signalPorts: readonly number[] | undefined;
}

/** Asks an admin server which gateway it belongs to; undefined if none answers. */
export async function identityAt(
  address: AdminAddress,
  silence = IDENTITY_WITHIN,
): Promise<RunningGateway | undefined> {
  try {
    const response = await answerTo(address, {
      method: 'GET',
      path: '/api/overview',
      silence,
    });
    const body = String(await readBody(address, response, LIMITS.dumpBytes));
    const { config, configPath, pid, gateways, signalPorts } = membersOf(parseJson(body));
    const isNumber = (value: unknown): value is number => typeof value === 'number';
    return typeof config === 'string' && typeof pid === 'number'
      ? {
          shown: `${escapeControls(config)} (pid ${pid})`,
          config,
          configPath: stringIn(configPath),
          pid,
          ports: elementsOf(gateways)
            .map((one) => membersOf(one)['port'])
            .filter(isNumber),
          signalPorts: Array.isArray(signalPorts) ? signalPorts.filter(isNumber) : undefined,
        }
      : undefined;
  } catch {
    return undefined;
  }
}

function answerTo(address: AdminAddress, request: AdminRequest): Promise<IncomingMessage> {
  const { method, path, accept, body, silence = LIMITS.adminResponseTimeout, signal } = request;
  const headers = accept === undefined ? {} : { accept };
  return new Promise((resolve, reject) => {
    const outgoing = (address.isTls ? sendHttps : sendHttp)(
      {
        method,
        path: address.prefix + path,
        ...(address.socketPath === undefined
          ? { host: address.host, port: address.port, headers }
          : { socketPath: address.socketPath, headers: { ...headers, host: 'localhost' } }),
        agent: false,
        ...(signal === undefined ? {} : { signal }),
      },
      resolve,
    );
    outgoing.on('error', (error: NodeJS.ErrnoException) => reject(unreachable(address, error)));
    if (silence > 0) outgoing.setTimeout(silence, () => outgoing.destroy(new SilenceError(silence)));
    outgoing.end(body);
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
          'save it with curl, and inspect the file',
        );
      }
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw unreachable(address, error, 'closed the connection in the middle of its response');
  }
  return Buffer.concat(parts);
}

const START =
  'start the gateway (agctl serve -f gateway.yaml), or select its admin server with --admin <host:port>, the address in config.adminAddr';

/** Converts a failed connection to an error with the address and the next step. */
export function unreachable(
  { shown }: Pick<AdminAddress, 'shown'>,
  error: unknown,
  otherwise = 'closed the connection without a response',
): CommandError {
  if (error instanceof CommandError) return error;
  const fail = (message: string, help = START): CommandError =>
    new CommandError('unreachable', message, help);
  // If both address families fail, Node.js wraps both errors in one.
  const code = errorCode(error) || errorCode(elementsOf(membersOf(error)['errors'])[0]);
  const message = messageOf(error);
  if (code === 'ECONNREFUSED') return fail(`no gateway at ${shown}: nothing listens there`);
  if (code === 'ENOENT') return fail(`no gateway at ${shown}: no such socket`);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return fail(
      `no gateway at ${shown}: unknown host name`,
      'use --admin with a name or address that this machine can reach',
    );
  if (code === 'EACCES' || code === 'EPERM')
    return fail(`${shown} may not be opened by this user`, 'run as the user that runs the gateway');
  if (code === 'SILENCE')
    return fail(
      `${shown} accepts connections, but does not respond (${message})`,
      'is it the admin server? its address is config.adminAddr',
    );
  if (code.startsWith('HPE_')) return notAnAdmin(shown, 'the server there does not speak HTTP');
  if (/^(?:ECONNRESET|EPIPE|ERR_STREAM_PREMATURE_CLOSE)$/.test(code) || message === 'aborted')
    return fail(`${shown} ${otherwise}`, 'it may have stopped or crashed: see its log');
  return fail(`cannot reach ${shown}: ${escapeControls(message)}`);
}

/** Another kind of server listens at the address. */
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
  // These say all there is to say.
  if (status === 403 && (said.startsWith(READ_ONLY) || / needs the role `\w+`, and /.test(said)))
    return new CommandError('refused', said);
  if (status === 401 || status === 403)
    return new CommandError(
      'refused',
      `${address.shown} rejected the request: ${words}${said === '' ? '' : `, ${said}`}`,
      'an admin server on a loopback address accepts requests for localhost only; a proxy in front of it may require a login',
    );
  if (status === 400)
    return new CommandError('usage', said === '' ? `${address.shown} answered ${words}` : said);
  if (status >= 500)
    return new CommandError(
      'not_ok',
      `${address.shown} failed: ${words}${said === '' ? '' : `, ${said}`}`,
      'see its log',
    );
  // The text of the server says what must change first.
  if (status === 409)
    return new CommandError('not_ok', said === '' ? `${address.shown} answered ${words}` : said);
  if (status === 429)
    return new CommandError(
      'not_ok',
      `${address.shown} is busy: ${said === '' ? words : said}`,
      'try again when the other operation has ended',
    );
  return notAnAdmin(address.shown, `${method} ${endpoint} is ${words}`);
}

const SHOWN = 300;

/** The message of a response, or its first line, safe to print; empty for a web page. */
export function firstLine(body: Buffer): string {
  const sent = body.toString('utf8').trim();
  const { error } = membersOf(sent.startsWith('{') ? jsonIn(sent) : undefined);
  const text = stringIn(membersOf(error)['message']) ?? sent;
  if (/^<(?:!doctype|html)/i.test(text)) return '';
  const [line = ''] = text.split('\n');
  return escapeControls(line.trim().slice(0, SHOWN));
}
