import { readFile } from 'node:fs/promises';
import { type IncomingMessage, STATUS_CODES, request as sendHttp } from 'node:http';
import { request as sendHttps } from 'node:https';
import { resolve } from 'node:path';
import { CommandError } from '../../core/exit-codes.ts';
import { errorCode } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import { nearest } from '../../core/suggest.ts';
import { readInput } from './dump.ts';

/** A request that `agctl proxy trace` sends. */
export interface OwnRequest {
  readonly url: URL;
  readonly method: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly body: Buffer | undefined;
}

type Take = (value: string, draft: Draft) => void;

interface Draft {
  method?: string;
  isHead?: boolean;
  url?: string;
  readonly headers: [string, string][];
  /** Texts, or files to read (`@name`). */
  readonly data: { readonly text: string; readonly isRaw: boolean; readonly isBinary: boolean }[];
  isJson?: boolean;
}

const data =
  (isRaw: boolean, isBinary: boolean): Take =>
  (text, draft) =>
    draft.data.push({ text, isRaw, isBinary });

const WITH_VALUE: Readonly<Record<string, Take>> = {
  '--request': (value, draft) => {
    draft.method = value;
  },
  '--header': (value, draft) => {
    const [, name, text] = /^([^:;\s]+)\s*[:;]\s*(.*)$/s.exec(value) ?? [];
    if (name === undefined || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw wrong(`-H ${JSON.stringify(value)} is not a header`, "expected -H 'name: value'");
    draft.headers.push([name, text ?? '']);
  },
  '--data': data(false, false),
  '--data-ascii': data(false, false),
  '--data-raw': data(true, false),
  '--data-binary': data(false, true),
  '--json': (value, draft) => {
    draft.isJson = true;
    data(false, true)(value, draft);
  },
  '--user': (value, draft) => {
    draft.headers.push(['authorization', `Basic ${Buffer.from(value).toString('base64')}`]);
  },
  '--user-agent': (value, draft) => {
    draft.headers.push(['user-agent', value]);
  },
  '--url': (value, draft) => takeUrl(value, draft),
};

const SHORT: Readonly<Record<string, string>> = {
  X: '--request',
  H: '--header',
  d: '--data',
  u: '--user',
  A: '--user-agent',
};
/** Options of copied curl commands that have no effect here. */
const IGNORED = new Set([
  '--silent',
  '--show-error',
  '--include',
  '--verbose',
  '--no-buffer',
  '--compressed',
]);
const IGNORED_SHORT = /^[sSivN]+$/;

/**
 * Parses the words after `--`: a URL and the curl options that describe a request (-X, -H, -d, --json, -u, -A, -I).
 *
 * @throws CommandError with exit name `usage` for an unknown option or an unreadable body file
 */
export async function ownRequest(words: readonly string[], cwd: string): Promise<OwnRequest> {
  const draft: Draft = { headers: [], data: [] };
  let skips = 0;
  for (const [index, word] of words.entries())
    skips = skips > 0 ? 0 : takeWord(word, words[index + 1], draft);
  if (draft.url === undefined)
    throw wrong('expected a URL after --', 'agctl proxy trace -- http://127.0.0.1:3000/mcp');
  const url = readUrl(draft.url);
  const body = await bodyOf(draft, cwd);
  if (url.username !== '' && !hasHeader(draft, 'authorization'))
    WITH_VALUE['--user']?.(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`, draft);
  const defaults = contentType(draft, body);
  const method = draft.method ?? (draft.isHead ? 'HEAD' : body === undefined ? 'GET' : 'POST');
  if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(method))
    throw wrong(`-X ${JSON.stringify(method)} is not a method`);
  return { url, method, headers: [...defaults, ...draft.headers.flat()], body };
}

/** Consumes one word, and the next one if it is the value: then returns 1. */
function takeWord(word: string, next: string | undefined, draft: Draft): 0 | 1 {
  if (!word.startsWith('-')) {
    takeUrl(word, draft);
    return 0;
  }
  if (IGNORED.has(word) || (!word.startsWith('--') && IGNORED_SHORT.test(word.slice(1)))) return 0;
  if (word === '-I' || word === '--head') {
    draft.isHead = true;
    return 0;
  }
  const [, long, glued] = word.startsWith('--')
    ? ([word, ...word.split(/=(.*)/s, 2)] as const)
    : ([word, SHORT[word[1] ?? ''], word.slice(2) || undefined] as const);
  const take = long === undefined || !Object.hasOwn(WITH_VALUE, long) ? undefined : WITH_VALUE[long];
  if (take === undefined) {
    const near = nearest(word, [...Object.keys(WITH_VALUE), '--head']);
    throw wrong(
      `${word} is not an option for the request${near === undefined ? '' : `; did you mean ${near}?`}`,
      'supported as in curl: -X, -H, -d, --data-raw, --data-binary, --json, -u, -A, -I',
    );
  }
  const value = glued ?? next;
  if (value === undefined) throw wrong(`${word} requires a value`);
  take(value, draft);
  return glued === undefined ? 1 : 0;
}

function takeUrl(word: string, draft: Draft): void {
  if (draft.url !== undefined)
    throw wrong(
      `there are two URLs after --: ${draft.url} and ${word}`,
      'only one request can be traced at a time',
    );
  draft.url = word;
}

function readUrl(text: string): URL {
  const full = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw wrong(`${text} is not an http:// or https:// URL`);
  return url;
}

async function bodyOf({ data: parts, isHead }: Draft, cwd: string): Promise<Buffer | undefined> {
  if (parts.length === 0 || isHead) return undefined;
  const pieces: Buffer[] = [];
  for (const { text, isRaw, isBinary } of parts) {
    if (pieces.length > 0) pieces.push(Buffer.from('&'));
    if (isRaw || !text.startsWith('@')) pieces.push(Buffer.from(text));
    else {
      const bytes = await readBodyFile(text.slice(1), cwd);
      // curl removes line breaks from files given with -d.
      pieces.push(
        isBinary ? bytes : Buffer.from(bytes.toString('latin1').replace(/[\r\n\0]/g, ''), 'latin1'),
      );
    }
  }
  return Buffer.concat(pieces);
}

async function readBodyFile(name: string, cwd: string): Promise<Buffer> {
  try {
    return name === '-' ? await readInput(name, cwd) : await readFile(resolve(cwd, name));
  } catch (error) {
    throw wrong(
      `cannot read ${name} for the body: ${errorCode(error)}`,
      'a value that begins with @ names a file; use --data-raw to send it unchanged',
    );
  }
}

/**
 * The content type that curl would send, except that a JSON body given with -d is sent as JSON, which users usually
 * mean.
 */
function contentType(draft: Draft, body: Buffer | undefined): string[] {
  if (body === undefined) return [];
  const looksJson = draft.isJson === true || /^\s*[{[]/.test(body.subarray(0, 64).toString('latin1'));
  const type = looksJson ? 'application/json' : 'application/x-www-form-urlencoded';
  return [
    ...(hasHeader(draft, 'content-type') ? [] : ['content-type', type]),
    ...(draft.isJson && !hasHeader(draft, 'accept') ? ['accept', 'application/json'] : []),
  ];
}

function hasHeader({ headers }: Draft, wanted: string): boolean {
  return headers.some(([name]) => name.toLowerCase() === wanted);
}

function wrong(message: string, help?: string): CommandError {
  return new CommandError('usage', escapeControls(message), help);
}

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
