import { Readable } from 'node:stream';
import { memoryApiUrl } from '../../adapter/base-url.ts';
import { NAMESPACE_HEADER } from '../../adapter/namespace.ts';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { isRecord, jsonIn, membersOf, parseJson } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context } from '../context.ts';
import { apiKeyFrom, namespaceFrom } from './options.ts';

export interface RestOptions {
  readonly memoryApiUrl?: string;
  readonly namespace?: string;
}

/** The backend of `agctl memory serve` on this machine. */
const LOCAL = 'http://127.0.0.1:3006';

/**
 * Sends a request to a running memory backend and returns its successful response.
 *
 * @throws CommandError `unreachable`, `refused` or `not_ok`, with the backend's message
 */
export async function request(
  { memoryApiUrl: url, namespace: named }: RestOptions,
  context: Context,
  path: string,
  body?: { readonly type: string; readonly text: string },
): Promise<Response> {
  const base = memoryApiUrl(url ?? (context.env['MEMORY_API_URL'] || LOCAL));
  const key = apiKeyFrom(context);
  const namespace = namespaceFrom(named);
  const response = await fetch(`${base.href}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(namespace === undefined ? {} : { [NAMESPACE_HEADER]: namespace }),
      ...(body === undefined ? {} : { 'content-type': body.type }),
    },
    redirect: 'error',
    ...(body === undefined ? {} : { body: body.text }),
  }).catch((error: unknown) => {
    throw lost(base, error);
  });
  if (response.ok) return response;
  const text = await response.text().catch(() => '');
  const exit = response.status === 401 || response.status === 403 ? 'refused' : 'not_ok';
  throw new CommandError(
    exit,
    `the memory backend at ${base.origin} answered ${response.status}: ${escapeControls(messageIn(text))}`,
    exit === 'refused' ? 'set MEMORY_API_KEY to the key of the backend' : undefined,
  );
}

/** The connection could not be made or broke. */
export function lost(base: URL | string, error: unknown): CommandError {
  const cause = membersOf(error)['cause'] ?? error;
  return new CommandError(
    'unreachable',
    `the memory backend at ${typeof base === 'string' ? base : base.origin} cannot be reached: ${messageOf(cause)}`,
    'start it with agctl memory serve, or name it with --memory-api-url or MEMORY_API_URL',
  );
}

/** The members of a response. @throws CommandError if it has none: another server listens there, or a proxy answered */
export async function membersIn(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const value = await response
    .text()
    .then(parseJson)
    .catch(() => undefined);
  if (isRecord(value)) return value;
  throw unexpected();
}

/** The bytes of a response. @throws CommandError if it has no body (status 204 or 205), which no backend sends */
export function streamOf({ body }: Response): Readable {
  if (body === null) throw unexpected();
  return Readable.from(body);
}

/** A response that is none of a memory backend. */
export const unexpected = (): CommandError =>
  new CommandError(
    'unreachable',
    'the memory backend sent an unexpected response',
    'is --memory-api-url or MEMORY_API_URL the address of a memory backend?',
  );

function messageIn(text: string): string {
  const { message } = membersOf(membersOf(jsonIn(text))['error']);
  return typeof message === 'string' ? message.slice(0, 500) : 'not a response of a memory backend';
}
