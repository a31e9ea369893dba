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
 * Writes events as they come, in the form that was asked for. As text, requests that run at once are told one after
 * another: the first as it goes, the others when it is over.
 */
export class TraceOutput {
  readonly #plan: TracePlan;
  readonly #context: Context;
  /** Requests that are not told to their end, in the order of their beginnings. */
  readonly #told = new Map<number, Telling>();
  #saving: Promise<void> = Promise.resolve();
  /** A trace had what `--fail-on` names. */
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
    const telling = this.#told.get(trace) ?? new Telling();
    this.#told.set(trace, telling);
    telling.event(json);
    this.#write();
  }

  /** All of a request has come. */
  ended(trace: number): void {
    const telling = this.#told.get(trace);
    if (telling === undefined) return;
    telling.end();
    this.failed ||= this.#plan.failOn.some((condition) => matches(telling.trace, condition));
    this.#write();
  }

  /** The same for all that are left. */
  end(): void {
    for (const trace of this.#told.keys()) this.ended(trace);
  }

  saved(): Promise<void> {
    return this.#saving;
  }

  #write(): void {
    for (const [trace, telling] of this.#told) {
      const text = telling.take();
      if (this.#plan.form === 'text' && text !== '') this.#context.stdout.write(text);
      if (!telling.isOver) return;
      this.#told.delete(trace);
    }
  }
}

/** One request as text. */
class Telling {
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

  /** What has not been written yet. */
  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}

/** An event that came over several `data:` lines holds line breaks, between its tokens only. */
function oneLine(text: string): string {
  return text.includes('\n') ? text.replaceAll('\n', ' ') : text;
}
