import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { parseExactly } from '../../server/llm/chat/exact-json.ts';
import type { StreamEvent } from './format.ts';

/** Reads the events of a stream from its chunks, which may end anywhere. Comments, such as keepalives, are not events. */
export class EventReader {
  readonly events: StreamEvent[] = [];
  readonly #decoder = new TextDecoder();
  #ms = 0;
  readonly #parser = createParser({
    onEvent: (message) => void this.events.push(eventOf(message, this.#ms)),
  });

  /** `ms`: when the chunk came. */
  read(chunk: Uint8Array, ms: number): void {
    this.#ms = ms;
    this.#parser.feed(this.#decoder.decode(chunk, { stream: true }));
  }
}

function eventOf({ event, id, data }: EventSourceMessage, ms: number): StreamEvent {
  const json = /^\s*[[{]/.test(data) ? parseExactly(data) : undefined;
  return {
    ms,
    ...(event !== undefined && { event }),
    ...(id !== undefined && { id }),
    ...(json === undefined ? { text: data } : { json }),
  };
}

/** An event as it is sent. */
export function frameOf({ event, id, json, text }: StreamEvent): string {
  const data = json === undefined ? (text ?? '') : JSON.stringify(json);
  const lines = data.split('\n').map((line) => `data: ${line}\n`);
  return `${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}${lines.join('')}\n`;
}
