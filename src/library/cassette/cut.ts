import { membersOf } from '../../core/foreign.ts';
import type { Exchange, RecordedResponse, StreamEvent } from './format.ts';

/** The events that a client had got: behind the last one, the gateway may have written that the client has left. */
export function receivedEvents({ events = [], cut }: RecordedResponse): readonly StreamEvent[] {
  if (cut !== 'client') return events;
  const last = events.findIndex(isLast);
  if (last !== -1) return events.slice(0, last + 1);
  const { json } = events.at(-1) ?? {};
  return JSON.stringify(json ?? '').includes(CLIENT_LEFT) ? events.slice(0, -1) : events;
}

/** Whether the client had left before anything of an answer had come. */
export function isGivenUp({ request, response }: Exchange): boolean {
  const { status, cut, body, events } = response;
  if (status === 0) return true;
  // A server may have had nothing to tell.
  if (events !== undefined && request.method === 'GET') return false;
  const isEmpty = body === undefined || ('text' in body && body.text === '');
  return cut === 'client' && isEmpty && receivedEvents(response).length === 0;
}

/** Whether a response is whole although the client had left, which some do at the last event. */
export const isWhole = ({ events = [] }: RecordedResponse): boolean => events.some(isLast);

/** Whether an event ends the stream by the format of an API of models. */
export const isLast = ({ json, text }: StreamEvent): boolean =>
  text === '[DONE]' || LAST.has(String(membersOf(json)['type']));

const LAST = new Set(['message_stop', 'response.completed', 'response.failed', 'response.incomplete']);

/** What the gateway writes at the end of a stream of a model whose client has left. */
const CLIENT_LEFT = 'the client disconnected before the end of the response';
