import { LIMITS } from '../core/limits.ts';
import type { LineFormat, LineSink, LogFormat, TerminalFormat } from '../core/log.ts';
import type { LineFormats } from '../server/workers/calls.ts';
import { type Context, wantsColor } from './context.ts';

/** Lines for people where a terminal shows them; files and pipes get the configured format. */
export function lineFormats(
  configured: LogFormat,
  color: string,
  { stdout, stderr, env }: Pick<Context, 'stdout' | 'stderr' | 'env'>,
): LineFormats {
  const formatFor = (stream: Context['stdout']): LineFormat =>
    configured === 'text' && stream.isTTY === true
      ? terminalFormat(stream, wantsColor(stream, color, env))
      : configured;
  return { log: formatFor(stderr), accessLog: formatFor(stdout) };
}

/** What a terminal is as wide as without a size. */
const COLUMNS = 80;

function terminalFormat(stream: Context['stdout'], color: boolean): TerminalFormat {
  return {
    color,
    get columns() {
      return stream.columns || COLUMNS;
    },
  };
}

/** Lines of a terminal that wait until the banner has been shown. */
export interface HeldLines {
  readonly sink: LineSink;
  /** Writes the lines, now and from now on. */
  release(): void;
}

/**
 * Holds lines back until `release`, but at most for `LIMITS.startupHold`: if the start takes longer, the lines say why.
 */
export function heldLines(sink: LineSink): HeldLines {
  let held: string[] | undefined = [];
  const release = (): void => {
    clearTimeout(timer);
    const lines = held ?? [];
    held = undefined;
    for (const line of lines) sink.write(line);
  };
  const timer = setTimeout(release, LIMITS.startupHold).unref();
  return {
    sink: {
      write: (line) => {
        if (held === undefined) sink.write(line);
        else held.push(line);
      },
      get dropped() {
        return sink.dropped;
      },
      get failure() {
        return sink.failure;
      },
      onDropped: (listener) => sink.onDropped?.(listener),
      get queued() {
        return sink.queued ?? 0;
      },
      get isBlocked() {
        return sink.isBlocked ?? false;
      },
      discard: () => sink.discard?.(),
      flush: () => {
        release();
        return sink.flush();
      },
    },
    release,
  };
}
