import { dataOf } from '../frames.ts';
import { membersOf, parseOrNothing } from '../json-members.ts';
import { forEachText, type TextPath, TooDeep } from '../texts.ts';
import { failed } from './check.ts';
import { dropLogprobs } from './item-texts.ts';

type Json = Record<string | number, unknown>;

/**
 * One of the texts that a stream builds up, event by event: the content of a choice, its reasoning, the arguments of one
 * of its tool calls. As text: the number of the choice and the path in it.
 */
export type Channel = string;

/** An event of a stream that waits for guardrails. */
export interface HeldFrame {
  readonly bytes: Buffer;
  /** The event's JSON; undefined when it is none. */
  readonly value: Json | undefined;
  /** Text by channel; empty when the event says nothing. */
  readonly texts: ReadonlyMap<Channel, string>;
  /** Choices that it is about. */
  readonly choices: readonly number[];
  /** Whether it ends a choice or the stream, so that nothing may come after it. */
  readonly isLast: boolean;
  /** A comment: readers ignore it, so it need not wait. */
  readonly isComment: boolean;
}

/** Reads an event as it came. Throws an `AppError` (503) for what is nested too deeply to be looked at. */
export function readFrame(bytes: Buffer): HeldFrame {
  const data = dataOf(bytes);
  if (data === undefined)
    return { bytes, value: undefined, texts: new Map(), choices: [], isLast: false, isComment: true };
  return withValue(bytes, data === '[DONE]' ? undefined : membersOf(parseOrNothing(data)));
}

/** The choice that a channel belongs to. */
export function choiceOf(channel: Channel): number {
  return Number.parseInt(channel.slice(1), 10);
}

/**
 * The same event with other texts: each channel's in pieces small enough that the overlap can be kept to within one. What
 * introduces a text (the id and name of a tool call) comes before it, the reason of the end after it.
 */
export function maskedFrames(frame: HeldFrame, masked: ReadonlyMap<Channel, string>): HeldFrame[] {
  const { value, texts } = frame;
  if (value === undefined || texts.size === 0) return [frame];
  const rest = choicesOf(value).map(withoutTexts);
  const pieces = [...masked].flatMap(([channel, text]) =>
    (text.match(/[\s\S]{1,64}/gu) ?? []).map((piece) => textFrame(value, channel, piece)),
  );
  const introduces = rest.filter(says);
  const ends = rest.filter(({ finish_reason: reason }) => (reason ?? null) !== null);
  return [
    ...(introduces.length === 0
      ? []
      : [frameOf({ ...value, choices: introduces.map((choice) => ({ ...choice, finish_reason: null })) })]),
    ...pieces,
    ...(ends.length === 0 ? [] : [frameOf({ ...value, choices: ends.map(endOf) })]),
  ];
}

function withValue(bytes: Buffer, value: Json | undefined): HeldFrame {
  const texts = new Map<Channel, string>();
  const choices = choicesOf(value);
  for (const [position, choice] of choices.entries()) {
    const index = indexOf(choice, position);
    visitTexts(choice, (text, path) => {
      const channel: Channel = JSON.stringify([index, ...path]);
      texts.set(channel, (texts.get(channel) ?? '') + text);
    });
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

function visitTexts(choice: Json, visit: (text: string, path: TextPath) => void): void {
  try {
    forEachText(choice, visit, indexOf);
  } catch (error) {
    if (error instanceof TooDeep) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}

function choicesOf(value: Json | undefined): Json[] {
  const choices = value?.['choices'];
  return Array.isArray(choices)
    ? choices.filter((choice): choice is Json => typeof choice === 'object' && choice !== null)
    : [];
}

/** Events hold parts of a list, of choices or of tool calls, and say in `index` which. */
function indexOf(item: unknown, position: number): number {
  const index = (item as { index?: unknown } | null)?.index;
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < MAX_INDEX
    ? index
    : position;
}

// More choices and tool calls than any provider offers.
const MAX_INDEX = 1_024;

const frameOf = (value: Json): HeldFrame =>
  withValue(Buffer.from(`data: ${JSON.stringify(value)}\n\n`), value);

/** An event with this text of one channel and nothing else. */
function textFrame(value: Json, channel: Channel, text: string): HeldFrame {
  const [index, ...path] = JSON.parse(channel) as [number, ...TextPath];
  const choice = choicesOf(value).find((candidate, position) => indexOf(candidate, position) === index);
  const said = nested(path, text) as Json;
  const { role } = (choice?.['delta'] ?? {}) as Json;
  if (role !== undefined && typeof said['delta'] === 'object') said['delta'] = { role, ...said['delta'] };
  return frameOf({ ...value, choices: [{ index, ...said, finish_reason: null }] });
}

function nested([step, ...rest]: TextPath, text: string): unknown {
  if (step === undefined) return text;
  const inner = nested(rest, text);
  if (typeof step === 'string') return { [step]: inner };
  return [typeof inner === 'object' ? { index: step, ...inner } : inner];
}

/** A choice's part of an event with everything that is no text: ids and names of tool calls, the reason of the end. */
function withoutTexts(choice: Json): Json {
  const copy = structuredClone(choice);
  const paths: TextPath[] = [];
  forEachText(copy, (_, path) => paths.push(path));
  for (const path of paths) {
    const owner = path.slice(0, -1).reduce((inner: Json, step) => inner[step] as Json, copy);
    const last = path.at(-1) as string | number;
    if (Array.isArray(owner)) owner[last as number] = '';
    else delete owner[last];
  }
  dropLogprobs(copy);
  return copy;
}

/** Whether something is left in a choice that a client wants to know. */
function says({ index: _index, finish_reason: _reason, logprobs: _logprobs, ...rest }: Json): boolean {
  const isWanted = (value: unknown, key: string): boolean => {
    if (key === 'role' || key === 'index' || value === null || value === '') return false;
    if (typeof value !== 'object') return true;
    return Object.entries(value as object).some(([inner, member]) => isWanted(member, inner));
  };
  return isWanted(rest, '');
}

function endOf(choice: Json): Json {
  const { index, finish_reason: reason } = choice;
  return 'delta' in choice
    ? { index, delta: {}, finish_reason: reason }
    : { index, text: '', finish_reason: reason };
}
