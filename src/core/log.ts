import { LIMITS } from './limits.ts';
import { LogDirectives } from './log-directives.ts';

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = 'text' | 'json';
export type LogFields = Readonly<Record<string, unknown>>;

/** Where lines go. Bounded: a reader that stopped costs lines (`dropped`), never memory or a blocked loop. */
export interface LineSink {
  write(line: string): void;
  readonly dropped: number;
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
  /** Which lines are written. May be changed at any time. */
  readonly directives: LogDirectives;
}

/** `level` is a level or a list of directives; given as `LogDirectives`, several logs share them. */
export function createLog(sink: LineSink, level: string | LogDirectives, format: LogFormat): Log {
  const directives = typeof level === 'string' ? new LogDirectives(level) : level;
  const at =
    (lineLevel: LogLevel) =>
    (scope: string, message: string, fields: LogFields = {}): void => {
      if (!directives.allows(scope, lineLevel)) return;
      sink.write(
        format === 'json'
          ? jsonLine(lineLevel, scope, message, fields)
          : textLine(lineLevel, scope, message, fields),
      );
    };
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    trace: at('trace'),
    directives,
  };
}

/** UTC with six digits after the second, as the access log prints it. */
export function timestamp(milliseconds: number): string {
  if (milliseconds !== lastMilliseconds) {
    lastMilliseconds = milliseconds;
    lastTimestamp = `${new Date(milliseconds).toISOString().slice(0, -1)}000Z`;
  }
  return lastTimestamp;
}

// Lines come many a millisecond, and a date costs as much as all the rest of a line.
let lastMilliseconds = Number.NaN;
let lastTimestamp = '';

function textLine(level: LogLevel, scope: string, message: string, fields: LogFields): string {
  let line = `${timestamp(Date.now())}\t${level}\t${scope}\t${escapeControls(message)}\t`;
  const pairs = Object.entries(fields).filter(([, value]) => value !== undefined);
  line += pairs
    .map(([key, value]) => `${key}=${typeof value === 'string' ? quote(value) : JSON.stringify(value)}`)
    .join(' ');
  return `${line}\n`;
}

function jsonLine(level: LogLevel, scope: string, message: string, fields: LogFields): string {
  return `${escapeInJson(JSON.stringify({ level, time: timestamp(Date.now()), scope, message, ...fields }))}\n`;
}

/** Double quotes with escapes, cut at `LIMITS.logFieldLength`: one physical line whatever a client sends. */
export function quote(value: string): string {
  const cut = value.length > LIMITS.logFieldLength ? `${value.slice(0, LIMITS.logFieldLength)}…` : value;
  return escapeControls(JSON.stringify(cut));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not reach a terminal.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Control, line-separating and direction-changing characters as `\u{…}`: no input can forge a line or drive a terminal. */
export function escapeControls(value: string): string {
  return value.replace(CONTROLS, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same for a JSON text, which escapes with four digits. */
export function escapeInJson(json: string): string {
  return json.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
