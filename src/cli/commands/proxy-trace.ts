import { appendFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls, escapeInJson } from '../../core/log.ts';
import { matches } from '../../core/trace/fail-on.ts';
import { addEvent, EMPTY_TRACE, type TraceModel } from '../../core/trace-model.ts';
import type { Context } from '../context.ts';
import type { Run } from '../program.ts';
import { readInput } from '../proxy/dump.ts';
import type { OwnReply } from '../proxy/send-own.ts';
import { planTrace, type TraceOptions, type TracePlan } from '../proxy/trace-options.ts';
import { savedEvents, traceOnce } from '../proxy/trace-session.ts';
import { endText, stepText } from '../proxy/trace-text.ts';

/** Shows what the gateway does with the next request: on a screen, as text, or as the events themselves. */
export const run: Run<TraceOptions> = async (options, context) => {
  const plan = await planTrace(options, context);
  if (plan.save !== undefined) await begin(plan.save, context);
  if (plan.form === 'screen') {
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
    const traces = await traceAll(plan, context, stop.signal);
    const failed = traces.some((trace) => plan.failOn.some((condition) => matches(trace, condition)));
    return failed ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    // The reader of our output has what it wanted, or somebody pressed Ctrl-C.
    return hasReader ? EXIT_CODES.interrupted.code : EXIT_CODES.ok.code;
  } finally {
    process.off('SIGINT', interrupted);
  }
};

async function traceAll(
  plan: TracePlan,
  context: Context,
  signal: AbortSignal,
): Promise<readonly TraceModel[]> {
  const { source, form } = plan;
  if ('file' in source) {
    const shown = source.file === '-' ? 'standard input' : escapeControls(source.file);
    const output = new Output(plan, context);
    for (const { text, json } of await savedEvents(await readInput(source.file, context.cwd), shown))
      output.event(text, json);
    return output.end();
  }
  const traces: TraceModel[] = [];
  for (let index = 0; index < plan.count; index++) {
    const output = new Output(plan, context);
    const armed = (): void => {
      if (form === 'text' && source.request.own === undefined)
        context.stderr.write(`waiting for the next request at ${source.address.shown} (Ctrl-C stops)\n`);
    };
    let reply: OwnReply | undefined;
    try {
      await traceOnce(
        source.address,
        source.request,
        {
          armed,
          event: (text, json) => output.event(text, json),
          replied: (latest) => {
            reply = latest;
          },
        },
        signal,
      );
    } finally {
      traces.push(...output.end());
      if (reply !== undefined && form === 'text') context.stderr.write(replyText(reply));
      await output.saved();
    }
  }
  return traces;
}

/** Empties the file that the traces are written to. @throws CommandError (usage) */
async function begin(save: string, { cwd }: Context): Promise<void> {
  try {
    // Traces hold bodies and claims: for their owner only.
    await writeFile(resolve(cwd, save), '', { mode: 0o600 });
  } catch (error) {
    throw new CommandError(
      'usage',
      `cannot write ${escapeControls(save)}: ${(error as NodeJS.ErrnoException).code}`,
      '--save names another file',
    );
  }
}

/** Writes events as they come, in the form that was asked for. */
class Output {
  readonly #plan: TracePlan;
  readonly #context: Context;
  #trace: TraceModel = EMPTY_TRACE;
  readonly #earlier: TraceModel[] = [];
  #events = 0;
  #saving: Promise<void> = Promise.resolve();

  constructor(plan: TracePlan, context: Context) {
    this.#plan = plan;
    this.#context = context;
  }

  event(text: string, json: unknown): void {
    const { stdout, cwd } = this.#context;
    const { save, form } = this.#plan;
    if (save !== undefined)
      this.#saving = this.#saving.then(() => appendFile(resolve(cwd, save), `${oneLine(text)}\n`));
    this.#events += 1;
    if (form === 'raw')
      stdout.write(`${stdout.isTTY === true ? escapeInJson(oneLine(text)) : oneLine(text)}\n`);
    if (this.#events > LIMITS.traceEvents) return;
    const before = this.#trace;
    const next = addEvent(before, json);
    const step = next.steps.at(-1);
    // A file may hold several traces, one after another.
    if (step !== undefined && step.message.type === 'requestStarted' && before.steps.length > 0) {
      this.#finish();
      this.#trace = addEvent(EMPTY_TRACE, json);
      return;
    }
    this.#trace = next;
    if (form === 'text' && step !== undefined && next.steps !== before.steps)
      stdout.write(stepText(step, before));
  }

  /** The traces, after the last line of the last one. */
  end(): readonly TraceModel[] {
    if (this.#trace.steps.length > 0) this.#finish();
    return this.#earlier;
  }

  saved(): Promise<void> {
    return this.#saving;
  }

  #finish(): void {
    if (this.#plan.form === 'text') this.#context.stdout.write(endText(this.#trace));
    this.#earlier.push(this.#trace);
    this.#trace = EMPTY_TRACE;
  }
}

/** An event that came over several `data:` lines holds line breaks, between its tokens only. */
function oneLine(text: string): string {
  return text.includes('\n') ? text.replaceAll('\n', ' ') : text;
}

const SHOWN = 400;

function replyText({ words, type, body }: OwnReply): string {
  const lines = body.slice(0, SHOWN).trim().split('\n').slice(0, 6);
  return [`reply ${words}${type === '' ? '' : `  ${type}`}`, ...lines.map((text) => `  ${text}`)]
    .map((text) => `${escapeControls(text)}\n`)
    .join('');
}
