import { isRecord } from '../../../../core/foreign.ts';
import { HeaderList } from '../../../kernel/request/header-list.ts';
import type { Reply } from '../../../kernel/request/request-context.ts';
import type { Body } from './words.ts';

/** A request that the model refuses, with a code of the OpenAI API. */
export class InvalidRequest extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** A required member of a request. */
export function required(body: Body, name: string): unknown {
  const value = body[name];
  if (value === undefined || value === null)
    throw new InvalidRequest('missing_required_parameter', `Missing required parameter: '${name}'.`);
  return value;
}

/** The required member `messages`: at least one. */
export function messagesOf(body: Body): readonly Body[] {
  const messages = required(body, 'messages');
  const list = Array.isArray(messages) && messages.every(isRecord) ? messages : [];
  if (list.length === 0)
    throw new InvalidRequest(
      'invalid_type',
      "Invalid type for 'messages': expected a list with at least one message.",
    );
  return list;
}

export const json = (value: object): Reply => reply('application/json', JSON.stringify(value));

export const text = (value: string): Reply => reply('text/plain; charset=utf-8', value);

export function reply(type: string, body: string | Uint8Array): Reply {
  return { status: 200, headers: new HeaderList(['content-type', type]), body };
}

/** A stream of events that have only data, with `[DONE]` at the end. */
export const dataStream = (events: readonly object[]): Reply =>
  reply(
    'text/event-stream',
    `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`,
  );

export interface Event {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** A stream of events that are named by their type. */
export const namedStream = (events: readonly Event[]): Reply =>
  reply(
    'text/event-stream',
    events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
  );

/** Unix time in seconds. */
export const now = (): number => Math.floor(Date.now() / 1000);
