import { LIMITS } from './limits.ts';
import { formatEvent } from './sse-format.ts';

/**
 * Buffers the events of one stream so that a client that lost its connection can request them again (`Last-Event-ID`).
 * The last event is always kept, because it may be the response; older events are dropped once the buffer exceeds
 * `LIMITS.replayBytes`.
 */
export class EventReplay {
  readonly #id: string;
  #next = 0;
  #kept: { readonly number: number; readonly frame: string }[] = [];
  #bytes = 0;

  constructor(id: string) {
    this.#id = id;
  }

  /**
   * An event that carries only an id, so that a client that has received nothing else can still resume. `retry` is in
   * ms.
   */
  first(retry: number): string {
    return `id: ${this.#nextId()}\nretry: ${retry}\ndata: \n\n`;
  }

  /** Formats an event with the next id and adds it to the buffer. */
  keep(data: string, event?: string): string {
    const number = this.#next;
    const frame = formatEvent(data, event, this.#nextId());
    this.#kept.push({ number, frame });
    this.#bytes += frame.length;
    while (this.#kept.length > 1 && this.#bytes > LIMITS.replayBytes)
      this.#bytes -= this.#kept.shift()?.frame.length ?? 0;
    return frame;
  }

  /** The events after event `number`, or undefined when some of them have been dropped. */
  after(number: number): string[] | undefined {
    const first = this.#kept[0]?.number ?? this.#next;
    if (number < 0 || number >= this.#next || number + 1 < first) return undefined;
    return this.#kept.filter((event) => event.number > number).map(({ frame }) => frame);
  }

  #nextId(): string {
    return `${this.#id}.${this.#next++}`;
  }
}
