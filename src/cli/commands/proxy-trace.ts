import { appendFile, chmod, stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { errorCode } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls, escapeInJson } from '../../core/log.ts';
import { createSorter } from '../../core/trace/sorter.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../core/trace-model.ts';
import type { Context, Run } from '../context.ts';
import { tellWhichGateway } from '../proxy/admin-client.ts';
import { readInput } from '../proxy/dump.ts';
import { matches } from '../proxy/fail-on.ts';
import type { OwnReply } from '../proxy/own-request.ts';
import { planTrace, type TraceOptions, type TracePlan } from '../proxy/trace-options.ts';
import { savedEvents, traceRequests } from '../proxy/trace-session.ts';
import { endText, stepText } from '../proxy/trace-text.ts';

/** Shows how the gateway processes the next request: on a screen, as text, or as raw events. */
export const run: Run<TraceOptions> = async (options, context) => {
  const plan = await planTrace(options, context);
  if (plan.save !== undefined) await begin(plan.save, context);
  if (plan.form === 'screen') {
    // Before the screen is opened.
    if ('address' in plan.source) await tellWhichGateway(plan.source.address);
    const { showTrace } = await import('../tui/show-trace.ts');
    return showTrace(plan, { ...context, color: options.color });
  }
  const stop = new AbortController();
  let hasReader = true;
  const interrupted = (): void => stop.abort();
  const readerLeft = (): void => {
    hasReader = false;
    stop.abort();
  };
  process.once('SIGINT', interrupted);
  context.stdout.once('close', readerLeft).once('error', readerLeft);
  try {
    const failed = await traceAll(plan, context, stop.signal);
    return failed ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    // The reader of the output has closed it, or the user pressed Ctrl-C.
    return hasReader ? EXIT_CODES.interrupted.code : EXIT_CODES.ok.code;
  } finally {
    process.off('SIGINT', interrupted);
  }
};

/** Returns whether a trace met a condition of `--fail-on`. */
async function traceAll(plan: TracePlan, context: Context, signal: AbortSignal): Promise<boolean> {
  const { source, form, count } = plan;
  const output = new TraceOutput(plan, context);
  if ('file' in source) {
    const shown = source.file === '-' ? 'standard input' : escapeControls(source.file);
    const sorter = createSorter();
    for (const { text, json } of await savedEvents(await readInput(source.file, context.cwd), shown))
      output.event(text, json, sorter.of(json));
    output.end();
    return output.failed;
  }
  const { address, request } = source;
  let reply: OwnReply | undefined;
  const tellReply = (): void => {
    if (reply !== undefined && form === 'text') context.stderr.write(replyText(reply));
    reply = undefined;
  };
  try {
    await traceRequests(
      address,
      request,
      count,
      {
        armed: () => {
          if (form === 'text' && request.own === undefined)
            context.stderr.write(`waiting for the next request at ${address.shown} (Ctrl-C stops)\n`);
        },
        event: (text, json, trace) => output.event(text, json, trace),
        ended: (trace) => {
          output.ended(trace);
          tellReply();
        },
        replied: (latest) => {
          reply = latest;
        },
      },
      signal,
    );
  } finally {
    tellReply();
    await output.saved();
  }
  return output.failed;
}

/**
 * Creates or truncates the file for the traces.
 *
 * @throws CommandError with exit name `usage`
 */
async function begin(save: string, { cwd }: Context): Promise<void> {
  try {
    // Traces contain bodies and claims, so only the owner may read them, also in a file that exists.
    const path = resolve(cwd, save);
    await writeFile(path, '', { mode: 0o600 });
    if ((await stat(path)).isFile()) await chmod(path, 0o600);
  } catch (error) {
    throw new CommandError(
      'usage',
      `cannot write ${escapeControls(save)}: ${errorCode(error)}`,
      '--save must name another file',
    );
  }
}

const SHOWN = 400;

function replyText({ words, type, body }: OwnReply): string {
  const lines = body.slice(0, SHOWN).trim().split('\n').slice(0, 6);
  return [`reply ${words}${type === '' ? '' : `  ${type}`}`, ...lines.map((text) => `  ${text}`)]
    .map((text) => `${escapeControls(text)}\n`)
    .join('');
}

/**
 * Writes events as they arrive, in the requested format. As text, concurrent requests are printed one after another:
 * the first as its events arrive, the others when they are complete.
 */
class TraceOutput {
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
