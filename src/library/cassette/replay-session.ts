import { randomUUID } from 'node:crypto';
import type { SessionTape } from './session-tape.ts';
import type { Counts } from './tape.ts';

/** An MCP session of a client of a replay. It replays one recorded session. */
export class ReplaySession {
  readonly id = randomUUID();
  readonly label: string;
  readonly tape: SessionTape;
  readonly counts: Counts = new Map();
  /** Streams that the client has opened with GET. */
  streams = 0;
  /** Ids of recorded calls by those of the client, as texts. */
  readonly calls = new Map<string, string>();
  #posts = 0;
  readonly #answered = new Set<string>();
  readonly #waiting = new Set<() => void>();

  constructor(label: string, tape: SessionTape) {
    this.label = label;
    this.tape = tape;
  }

  /** The client has sent a message; `answers`: the id of the request that it answers. */
  received(answers?: string): void {
    this.#posts += 1;
    if (answers !== undefined) this.#answered.add(answers);
    for (const check of this.#waiting) check();
  }

  /** Resolves when the client has sent so many messages. Rejects when the signal is aborted. */
  untilPosts(count: number, signal: AbortSignal): Promise<void> {
    return this.#until(() => this.#posts >= count, signal);
  }

  /** Resolves when the client has answered this request. Rejects when the signal is aborted. */
  untilAnswered(id: string, signal: AbortSignal): Promise<void> {
    return this.#until(() => this.#answered.has(id), signal);
  }

  #until(isMet: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#waiting.delete(check);
        signal.removeEventListener('abort', abort);
        settle();
      };
      const check = (): void => {
        if (isMet()) end(resolve);
      };
      const abort = (): void => end(() => reject(signal.reason));
      if (signal.aborted) return reject(signal.reason);
      if (isMet()) return resolve();
      this.#waiting.add(check);
      signal.addEventListener('abort', abort);
    });
  }
}
