import { dataOf } from '../frames.ts';

type Json = Record<string, unknown>;

/** An event of a stream that waits for guardrails. */
export interface HeldFrame {
  readonly bytes: Buffer;
  /** The event's JSON; undefined when it is none. */
  readonly value: Json | undefined;
  /** Text by choice; empty when the event says nothing. */
  readonly texts: ReadonlyMap<number, string>;
  /** Choices that it is about. */
  readonly choices: readonly number[];
  /** Whether it ends a choice or the stream, so that nothing may come after it. */
  readonly isLast: boolean;
  /** A comment: readers ignore it, so it need not wait. */
  readonly isComment: boolean;
}

/** Reads an event as it came. */
export function readFrame(bytes: Buffer): HeldFrame {
  const data = dataOf(bytes);
  if (data === undefined)
    return { bytes, value: undefined, texts: new Map(), choices: [], isLast: false, isComment: true };
  return withValue(bytes, data === '[DONE]' ? undefined : parse(data));
}

/** The same event with other texts: each choice's in pieces small enough that the overlap can be kept to within one. */
export function maskedFrames(frame: HeldFrame, masked: ReadonlyMap<number, string>): HeldFrame[] {
  const { value, texts } = frame;
  if (value === undefined || texts.size === 0) return [frame];
  const pieces = [...masked].flatMap(([index, text]) =>
    (text.match(/[\s\S]{1,64}/gu) ?? []).map((piece) => textFrame(value, index, piece)),
  );
  return choicesOf(value).every(isOnlyText) ? pieces : [...pieces, withoutText(value)];
}

function parse(data: string): Json | undefined {
  try {
    const value = JSON.parse(data) as unknown;
    return typeof value === 'object' && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

function withValue(bytes: Buffer, value: Json | undefined): HeldFrame {
  const texts = new Map<number, string>();
  const choices = choicesOf(value);
  for (const [position, choice] of choices.entries()) {
    const text = choiceText(choice);
    const index = indexOf(choice, position);
    if (text !== '') texts.set(index, (texts.get(index) ?? '') + text);
  }
  return {
    bytes,
    value,
    texts,
    choices: choices.map(indexOf),
    isLast: choices.length === 0 || choices.some(({ finish_reason: reason }) => (reason ?? null) !== null),
    isComment: false,
  };
}

function choicesOf(value: Json | undefined): Json[] {
  const choices = value?.['choices'];
  return Array.isArray(choices)
    ? choices.filter((choice): choice is Json => typeof choice === 'object' && choice !== null)
    : [];
}

function indexOf(choice: Json, position: number): number {
  const { index } = choice;
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < MAX_CHOICES
    ? index
    : position;
}

// More choices than any provider offers; a number from outside must not size an array.
const MAX_CHOICES = 128;

const deltaOf = (choice: Json): Json => (choice['delta'] ?? {}) as Json;

function choiceText(choice: Json): string {
  if (typeof choice['text'] === 'string') return choice['text'];
  const { content } = deltaOf(choice);
  return typeof content === 'string' ? content : '';
}

const frameOf = (value: Json): HeldFrame =>
  withValue(Buffer.from(`data: ${JSON.stringify(value)}\n\n`), value);

/** An event with this text of one choice and nothing else of it. */
function textFrame(value: Json, index: number, text: string): HeldFrame {
  const choice = choicesOf(value).find((candidate, position) => indexOf(candidate, position) === index) ?? {};
  const { role } = deltaOf(choice);
  const said =
    typeof choice['text'] === 'string'
      ? { text }
      : { delta: { ...(role === undefined ? {} : { role }), content: text } };
  return frameOf({ ...value, choices: [{ index, ...said, finish_reason: null }] });
}

/** Whether a choice's part of an event is nothing but text. */
function isOnlyText(choice: Json): boolean {
  if ((choice['finish_reason'] ?? null) !== null || choiceText(choice) === '') return false;
  return Object.keys(deltaOf(choice)).every((key) => key === 'content' || key === 'role');
}

/** The event with everything that is no text: tool calls, the reason of the end. */
function withoutText(value: Json): HeldFrame {
  const choices = choicesOf(value).map((choice) => {
    if (typeof choice['text'] === 'string') return { ...choice, text: '' };
    if (choice['delta'] === undefined) return choice;
    const { content: _content, ...delta } = deltaOf(choice);
    return { ...choice, delta };
  });
  return frameOf({ ...value, choices });
}
