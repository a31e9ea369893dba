import { isUtf8 } from 'node:buffer';
import { isJson } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import { eachMember, elements } from '../../../kernel/json/json-text.ts';
import type { ChannelEvents } from '../../connection/target.ts';
import { requestNumber } from '../../protocol/message.ts';

type Events = Pick<ChannelEvents, 'message' | 'invalid' | 'failed' | 'awaits' | 'onlyRequest'>;

/**
 * Reads the messages in the lines that a server writes to stdout: one per line (MCP, "stdio"). Also read are messages whose
 * text is unambiguous although the server breaks that rule: JSON on several lines, arrays of messages, messages without a line
 * break between them, and control sequences of a terminal around them. Anything else is logged, and if it was a response, its call fails instead of
 * waiting. A message after other text on its line is not read: what a server logs, such as a fetched page, may contain one.
 */
export class StdoutMessages {
  readonly #events: Events;
  /** Lines of a message that has begun and is not complete. */
  #begun: string[] = [];
  #size = 0;
  #nesting = new Nesting();
  /** Why the message that has begun cannot be used. */
  #problem: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(events: Events) {
    this.#events = events;
  }

  /** Reads one line, without its line break. */
  line(bytes: Buffer): void {
    const problem = isUtf8(bytes) ? undefined : 'the line is not UTF-8';
    const line = bytes.toString('utf8');
    const text = withoutMarks(line);
    if (text.includes('\0'))
      this.#unreadable(text.replaceAll('\0', ''), 'the line has NUL characters, as in UTF-16');
    else if (text !== '') this.#visible(text, problem, line.startsWith('{'));
  }

  /** The server has closed its output: a message that has begun stays incomplete. */
  end(): void {
    if (this.#begun.length > 0) this.#drop('the message is incomplete');
  }

  /** A text that begins and ends like an object. */
  #object(text: string): void {
    // Quotes in strings are escaped, so this is between two objects.
    const parts = text.includes('}{"') ? objectsIn(text) : undefined;
    if (parts === undefined) this.#events.message(text);
    else for (const part of parts) this.#events.message(part);
  }

  #visible(text: string, problem: string | undefined, isFlushLeft: boolean): void {
    if (this.#begun.length > 0) {
      if (isFlushLeft && text.includes('"jsonrpc"') && isJson(text)) this.#drop('the message is incomplete');
      else {
        this.#add(text, problem);
        return;
      }
    }
    if (problem === undefined && isObject(text)) this.#object(text);
    else if (BEGIN.test(text)) this.#add(text, problem);
    else if (HEADER.test(text)) this.#unreadable(text, 'Content-Length headers are those of LSP', true);
    else this.#unreadable(text, problem ?? 'the line is not JSON');
  }

  /** Adds a line to the message that has begun. */
  #add(text: string, problem: string | undefined): void {
    this.#begun.push(text);
    this.#size += text.length;
    this.#problem ??= problem;
    if (this.#size > LIMITS.targetMessageBytes) this.#problem = 'the message is too long';
    this.#timer ??= setTimeout(() => this.end(), LIMITS.unfinishedMessageWait).unref();
    this.#timer.refresh();
    this.#nesting.read(text);
    if (this.#nesting.depth > 0 && this.#size <= LIMITS.targetMessageBytes) return;
    if (this.#problem !== undefined) {
      this.#drop(this.#problem);
      return;
    }
    const whole = this.#take();
    // A line break in JSON is white space. As events of a stream, each would be a line that simple clients do not join.
    const flat = isJson(whole) ? whole.replaceAll('\n', ' ') : whole;
    const parts = flat.startsWith('[') ? arrayOf(flat) : undefined;
    if (parts === undefined) this.#events.message(flat);
    else for (const part of parts) this.#events.message(part);
  }

  #take(): string {
    const text = this.#begun.join('\n');
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#begun = [];
    this.#size = 0;
    this.#problem = undefined;
    this.#nesting = new Nesting();
    return text;
  }

  #drop(problem: string): void {
    this.#unreadable(this.#take(), problem);
  }

  /** Logs a text, and fails the call that it was the response to. `isAnswer`: that is certain, although it has no id. */
  #unreadable(text: string, problem: string, isAnswer = false): void {
    const answer = isAnswer ? {} : answerIn(text);
    const id = answer && (answer.id ?? this.#events.onlyRequest?.());
    if (id === undefined || !this.#events.awaits(id)) this.#events.invalid(text, problem, undefined);
    else if (answer?.isAfterText !== true) this.#events.invalid(text, problem, id);
    else {
      this.#events.invalid(text, problem, undefined);
      // Some servers log each message before they send it.
      setTimeout(() => {
        if (this.#events.awaits(id))
          this.#events.failed(
            id,
            new Error("the server's answer cannot be used: there is other text on its line"),
          );
      }, LIMITS.loggedAnswerWait).unref();
    }
  }
}

/** A response that cannot be read. */
interface Answer {
  /** Number of the request, if it can be read. */
  readonly id?: number | undefined;
  readonly isAfterText?: boolean;
}

/** The response in a text that is not a message; undefined if there is none. */
function answerIn(text: string): Answer | undefined {
  const version = text.indexOf('"jsonrpc"');
  const start = version === -1 ? -1 : text.lastIndexOf('{', version);
  if (start === -1) return undefined;
  let id: string | undefined;
  let isRequest = false;
  try {
    eachMember(text, start, (key, from, to) => {
      if (key === 'id') id ??= text.slice(from, to);
      if (key === 'method') isRequest = true;
    });
  } catch {
    // What follows is not JSON.
  }
  if (isRequest) return undefined;
  return { id: requestNumber(id), isAfterText: /[a-z\d]/i.test(text.slice(0, start)) };
}

/** The first line of JSON on several lines, or of an array. Not that of a log line, such as `[INFO] ...` or `{ port: 1 }`. */
const BEGIN = /^(?:\{\s*(?:"|$)|\[\s*(?:\{|$))/;
const HEADER = /^Content-Length: *\d+$/i;

const isObject = (text: string): boolean => text.startsWith('{') && text.endsWith('}');

/** The elements of an array of objects; undefined for any other text. */
function arrayOf(text: string): string[] | undefined {
  if (!isJson(text)) return undefined;
  const parts = elements(text).map(({ start, end }) => text.slice(start, end));
  return parts.length > 0 && parts.every(isObject) ? parts : undefined;
}

/** The objects in a text that has nothing else; undefined for any other text. */
function objectsIn(text: string): string[] | undefined {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = new Nesting().read(text, from);
    if (end === -1) return undefined;
    parts.push(text.slice(from, end).trim());
    from = end;
  }
  return parts.every(isObject) ? parts : undefined;
}

/**
 * Control sequences of a terminal (ECMA-48): colours, the cursor, and texts such as titles and the progress of `dotnet run`, which end
 * with BEL or ST (modelcontextprotocol/csharp-sdk#791). Control characters in JSON are escaped.
 */
const CONTROL_SEQUENCES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with one.
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]P^_X][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-Z\\`-~])/g;

/** A text without control sequences, and without white space and NUL characters around it. */
function withoutMarks(text: string): string {
  const plain = (text.includes('\u001b') ? text.replace(CONTROL_SEQUENCES, '') : text).trim();
  let start = 0;
  let end = plain.length;
  while (plain.charCodeAt(start) === 0) start += 1;
  while (plain.charCodeAt(end - 1) === 0) end -= 1;
  return plain.slice(start, end).trim();
}

/** How deep a text that is read in parts is nested in objects and arrays. */
class Nesting {
  depth = 0;
  #isString = false;
  #isEscaped = false;

  /** Reads a part from an index. Returns the index after the end of the outermost value, or -1 if it has not ended. */
  read(text: string, from = 0): number {
    for (let at = from; at < text.length; at += 1) {
      const character = text[at];
      if (this.#isString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (character === '\\') this.#isEscaped = true;
        else if (character === '"') this.#isString = false;
      } else if (character === '"') this.#isString = true;
      else if (character === '{' || character === '[') this.depth += 1;
      else if (character === '}' || character === ']') {
        this.depth -= 1;
        if (this.depth <= 0) return at + 1;
      }
    }
    return -1;
  }
}
