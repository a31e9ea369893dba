import { appendFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { LIMITS } from '../../core/limits.ts';
import { escapeInJson } from '../../core/log.ts';
import { matches } from '../../core/trace/fail-on.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../core/trace-model.ts';
import type { Context } from '../context.ts';
import type { TracePlan } from './trace-options.ts';
import { endText, stepText } from './trace-text.ts';

/**
 * Writes events as they arrive, in the requested format. As text, concurrent requests are printed one after another:
 * the first as its events arrive, the others when they are complete.
 */
export class TraceOutput {
  readonly #plan: TracePlan;
  readonly #context: Context;
  /** Requests whose text is not completely written, in the order of their first events. */
  readonly #pending = new Map<number, RequestText>();
  #saving: Promise<void> = Promise.resolve();
  /** Whether a trace met a condition of `--fail-on`. */
  failed = false;

  constructor(plan: TracePlan, context: Context) {
    this.#plan = plan;
    this.#context = context;
  }

  event(text: string, json: unknown, trace: number): void {
    const { stdout, cwd } = this.#context;
    const { save, form } = this.#plan;
    if (save !== undefined)
      this.#saving = this.#saving.then(() => appendFile(resolve(cwd, save), `${oneLine(text)}\n`));
    if (form === 'raw')
      stdout.write(`${stdout.isTTY === true ? escapeInJson(oneLine(text)) : oneLine(text)}\n`);
    const pending = this.#pending.get(trace) ?? new RequestText();
    this.#pending.set(trace, pending);
    pending.event(json);
    this.#write();
  }

  /** All events of a request have arrived. */
  ended(trace: number): void {
    const pending = this.#pending.get(trace);
    if (pending === undefined) return;
    pending.end();
    this.failed ||= this.#plan.failOn.some((condition) => matches(pending.trace, condition));
    this.#write();
  }

  /** Completes all remaining requests. */
  end(): void {
    for (const trace of this.#pending.keys()) this.ended(trace);
  }

  saved(): Promise<void> {
    return this.#saving;
  }

  #write(): void {
    for (const [trace, pending] of this.#pending) {
      const text = pending.take();
      if (this.#plan.form === 'text' && text !== '') this.#context.stdout.write(text);
      if (!pending.isOver) return;
      this.#pending.delete(trace);
    }
  }
}

/** The text of one request. */
class RequestText {
  trace: TraceModel = EMPTY_TRACE;
  isOver = false;
  #events = 0;
  #text = '';

  event(json: unknown): void {
    this.#events += 1;
    if (this.#events > LIMITS.traceEvents) return;
    const before = this.trace;
    this.trace = addEvent(before, json);
    const step = this.trace.steps.at(-1);
    if (step !== undefined && this.trace.steps !== before.steps) this.#text += stepText(step, before);
  }

  end(): void {
    if (!this.isOver) this.#text += endText(this.trace);
    this.isOver = true;
  }

  /** Returns the text that has not been written yet. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}

/** An event that was sent in several `data:` lines contains line breaks, but only between its tokens. */
function oneLine(text: string): string {
  return text.includes('\n') ? text.replaceAll('\n', ' ') : text;
}
