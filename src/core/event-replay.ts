import { LIMITS } from './limits.ts';
import { formatEvent } from './sse-format.ts';

/**
 * Events of one stream, kept so that a client that lost its connection can ask for them again (`Last-Event-ID`). The last
 * event always stays, because it may be the response; of those before it as many as `LIMITS.replayBytes` allows.
 */
export class EventReplay {
  readonly #id: string;
  #next = 0;
  #kept: { readonly number: number; readonly frame: string }[] = [];
  #bytes = 0;

  constructor(id: string) {
    this.#id = id;
  }

  /** The event that only carries an id. A client that has got nothing else comes back with it. */
  first(retry: number): string {
    return `id: ${this.#nextId()}\nretry: ${retry}\ndata: \n\n`;
  }

  /** The event as text, with the next id. */
  keep(data: string, event?: string): string {
    const number = this.#next;
    const frame = formatEvent(data, event, this.#nextId());
    this.#kept.push({ number, frame });
    this.#bytes += frame.length;
    while (this.#kept.length > 1 && this.#bytes > LIMITS.replayBytes)
      this.#bytes -= this.#kept.shift()?.frame.length ?? 0;
    return frame;
  }

  /** The events after that one; undefined when some of them are not kept any more. */
  after(number: number): string[] | undefined {
    const first = this.#kept[0]?.number ?? this.#next;
    if (number < 0 || number >= this.#next || number + 1 < first) return undefined;
    return this.#kept.filter((event) => event.number > number).map(({ frame }) => frame);
  }

  #nextId(): string {
    return `${this.#id}.${this.#next++}`;
  }
}
