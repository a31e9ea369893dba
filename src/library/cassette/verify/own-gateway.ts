import { Slot } from '../../../server/kernel/slot.ts';
import { factsOf } from '../../facts.ts';
import type { ProgramRecorder } from '../../start-program.ts';
import type { Exchange, RecordedFacts } from '../format.ts';
import { recordedFacts } from '../recorder.ts';

/** A header of requests with the line of their exchange. No policy and no server gets it. */
export const MARK = 'agctl-verify-line';

const lineOf = new Slot<string>();

/** Collects what a gateway in this process knows of the requests of a recording. */
export class FactsCollector implements ProgramRecorder {
  readonly #facts = new Map<string, PromiseWithResolvers<RecordedFacts | undefined>>();
  #isClosed = false;

  readonly tap: ProgramRecorder['tap'] = (events) => ({
    ...events,
    handle: (ctx, active) => {
      lineOf.set(ctx, ctx.headers.get(MARK));
      ctx.headers.delete(MARK);
      return events.handle(ctx, active);
    },
  });

  readonly ended: ProgramRecorder['ended'] = (ctx, status, runtime) => {
    const line = lineOf.get(ctx);
    if (line !== undefined) this.#of(line).resolve(recordedFacts(factsOf(ctx, status, runtime)));
  };

  begin(): void {}

  /** Requests that have not reached the gateway have no facts. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { resolve } of this.#facts.values()) resolve(undefined);
  }

  /** Resolves when the request of the exchange has ended. */
  async factsOf({ line }: Exchange): Promise<RecordedFacts | undefined> {
    const facts = this.#of(String(line));
    if (this.#isClosed) facts.resolve(undefined);
    return facts.promise;
  }

  #of(line: string): PromiseWithResolvers<RecordedFacts | undefined> {
    const known = this.#facts.get(line);
    if (known !== undefined) return known;
    const facts = Promise.withResolvers<RecordedFacts | undefined>();
    this.#facts.set(line, facts);
    return facts;
  }
}
