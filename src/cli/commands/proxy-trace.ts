import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { createSorter } from '../../core/trace/sorter.ts';
import type { Context, Run } from '../context.ts';
import { readInput } from '../proxy/dump.ts';
import type { OwnReply } from '../proxy/send-own.ts';
import { planTrace, type TraceOptions, type TracePlan } from '../proxy/trace-options.ts';
import { TraceOutput } from '../proxy/trace-output.ts';
import { savedEvents, traceRequests } from '../proxy/trace-session.ts';

/** Shows how the gateway processes the next request: on a screen, as text, or as raw events. */
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
    // Traces contain bodies and claims, so only the owner may read them.
    await writeFile(resolve(cwd, save), '', { mode: 0o600 });
  } catch (error) {
    throw new CommandError(
      'usage',
      `cannot write ${escapeControls(save)}: ${(error as NodeJS.ErrnoException).code}`,
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
