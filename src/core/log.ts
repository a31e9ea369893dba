import { InternalErrors } from './internal-errors.ts';
import { LIMITS } from './limits.ts';
import { LogDirectives } from './log-directives.ts';
import { clockText } from './render/figures.ts';
import { type Span, spansText, type Tone } from './render/span.ts';

const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = 'text' | 'json';
/** Short lines for people at a terminal, in place of `text`. */
export interface TerminalFormat {
  readonly color: boolean;
  /** Width of the terminal now. */
  readonly columns: number;
}
export type LineFormat = LogFormat | TerminalFormat;
export type LogFields = Readonly<Record<string, unknown>>;

export interface SinkFailure {
  /** Why nothing can be written; undefined if the reader is slow. */
  readonly problem: string | undefined;
  /** The reader has left: all further lines are dropped. */
  readonly isEnded: boolean;
}

/** Where lines go. Bounded: a reader that stopped costs lines (`dropped`), never memory or a blocked loop. */
export interface LineSink {
  write(line: string): void;
  readonly dropped: number;
  /** Why lines are dropped. */
  readonly failure?: SinkFailure | undefined;
  /** Has the listener called whenever lines are dropped. Absent where none ever are. */
  onDropped?(listener: () => void): void;
  /** Bytes that wait to be written; undefined where nothing ever waits. */
  readonly queued?: number;
  /** The reader takes nothing: a write has not returned for `LIMITS.logStall`. */
  readonly isBlocked?: boolean;
  /** Gives up what waits to be written, and writes no more. */
  discard?(): void;
  /** Resolves when everything written so far has left, or cannot. */
  flush(): Promise<void>;
}

/** Messages of the gateway about itself: `log.warn('mcp::stdio', 'target exited', { target })`. */
export interface Log {
  error(scope: string, message: string, fields?: LogFields): void;
  warn(scope: string, message: string, fields?: LogFields): void;
  info(scope: string, message: string, fields?: LogFields): void;
  debug(scope: string, message: string, fields?: LogFields): void;
  trace(scope: string, message: string, fields?: LogFields): void;
  /** A message that no level hides. */
  always(scope: string, message: string, fields?: LogFields): void;
  /**
   * An error of the program's own code was contained: it ended one call, message or line. Always counted, and logged with its
   * stack once a minute per place. Never throws.
   */
  internalError(scope: string, error: unknown, fields?: LogFields): void;
  /** Contained errors since the start. */
  readonly internalErrors: number;
  /** Which lines are written. May be changed at any time. */
  readonly directives: LogDirectives;
}

/** `level` is a level or a list of directives; given as `LogDirectives`, several logs share them. */
export function createLog(sink: LineSink, level: string | LogDirectives, format: LineFormat): Log {
  const print =
    typeof format === 'object' ? terminalPrinter(format) : format === 'json' ? jsonLine : textLine;
  return logTo((...message) => sink.write(print(...message)), level);
}

/** What is done with each message that the directives allow. */
export type LogWriter = (level: LogLevel, scope: string, message: string, fields: LogFields) => void;

/** The same, with messages as they are. */
export function logTo(write: LogWriter, level: string | LogDirectives): Log {
  const directives = typeof level === 'string' ? new LogDirectives(level) : level;
  const at =
    (lineLevel: LogLevel) =>
    (scope: string, message: string, fields: LogFields = {}): void => {
      if (!directives.allows(scope, lineLevel)) return;
      write(lineLevel, scope, message, fields);
    };
  const error = at('error');
  const contained = new InternalErrors();
  return {
    error,
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    always: (scope, message, fields = {}) => write('info', scope, message, fields),
    internalError: (scope, thrown, fields) => {
      const report = contained.add(scope, thrown);
      if (report === undefined) return;
      const { problem, notLogged } = report;
      error(scope, 'internal error', { ...fields, problem, not_logged: notLogged });
    },
    get internalErrors() {
      return contained.count;
    },
    directives,
  };
}

/** A log that writes nothing. */
export const SILENT_LOG: Log = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'off',
  'text',
);

/** UTC with six digits after the second, as the access log prints it. */
export function timestamp(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastSecondText = new Date(second * 1000).toISOString().slice(0, -'000Z'.length);
  }
  return `${lastSecondText}${String(Math.trunc(milliseconds - second * 1000)).padStart(3, '0')}000Z`;
}

// A date costs as much as all the rest of a line: it is formatted once a second.
let lastSecond = Number.NaN;
let lastSecondText = '';

function textLine(level: LogLevel, scope: string, message: string, fields: LogFields): string {
  const line = `${timestamp(Date.now())}\t${level}\t${scope}\t${escapeControls(message)}\t`;
  return `${line}${pairsText(fields)}\n`;
}

function pairsText(fields: LogFields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? quote(value) : JSON.stringify(value)}`)
    .join(' ');
}

type Printer = (level: LogLevel, scope: string, message: string, fields: LogFields) => string;

const LEVEL_TONES: Readonly<Record<LogLevel, Tone>> = {
  error: 'red',
  warn: 'yellow',
  info: 'cyan',
  debug: 'gray',
  trace: 'gray',
};

/** `15:04:38 warn  mcp::stdio  target exited  target=files`; the time is that of this machine. */
function terminalPrinter({ color }: TerminalFormat): Printer {
  return (level, scope, message, fields) => {
    const spans: Span[] = [
      { text: `${clockText(Date.now())} `, tone: 'gray' },
      { text: `${level.padEnd(5)} `, tone: LEVEL_TONES[level] },
      { text: `${scope}  `, tone: 'gray' },
      { text: escapeControls(message) },
    ];
    const pairs = pairsText(fields);
    if (pairs !== '') spans.push({ text: `  ${pairs}`, tone: 'gray' });
    return `${spansText(spans, color)}\n`;
  };
}

function jsonLine(level: LogLevel, scope: string, message: string, fields: LogFields): string {
  return `${escapeInJson(JSON.stringify({ level, time: timestamp(Date.now()), scope, message, ...fields }))}\n`;
}

/** Double quotes with escapes, cut at `LIMITS.logFieldLength`: one physical line whatever a client sends. */
export function quote(value: string): string {
  const cut = value.length > LIMITS.logFieldLength ? `${value.slice(0, LIMITS.logFieldLength)}…` : value;
  return escapeControls(JSON.stringify(cut));
}

/** Control, line-separating and direction-changing characters, which must not reach a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters.
export const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Control, line-separating and direction-changing characters as `\u{…}`: no input can forge a line or drive a terminal. */
export function escapeControls(value: string): string {
  return value.replace(CONTROLS, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same for a JSON text, which escapes with four digits. */
export function escapeInJson(json: string): string {
  return json.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
