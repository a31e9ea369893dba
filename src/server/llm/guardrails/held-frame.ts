import { dataOf } from '../frames.ts';
import { membersOf, parseOrNothing } from '../json-members.ts';
import { forEachText, NestingError, type TextPath } from '../texts.ts';
import { failed } from './check.ts';
import { dropLogprobs } from './item-texts.ts';

type Json = Record<string | number, unknown>;

/**
 * Identifies one of the texts that a stream assembles event by event: the content of a choice, its reasoning, or the
 * arguments of a tool call. JSON text of the choice index and the path within the choice.
 */
export type Channel = string;

/** An event of a stream, held back for guardrails. */
export interface HeldFrame {
  readonly bytes: Buffer;
  /** The parsed event; undefined if it is not JSON. */
  readonly value: Json | undefined;
  /** Text by channel; empty if the event contains no text. */
  readonly texts: ReadonlyMap<Channel, string>;
  /** Indexes of its choices. */
  readonly choices: readonly number[];
  /** Whether it ends a choice or the stream, so that no later text may be sent after it. */
  readonly isLast: boolean;
  /** A comment, which readers ignore. It need not be held. */
  readonly isComment: boolean;
}

/** Parses an event. Throws an `AppError` (503) if it is nested too deeply to check. */
export function readFrame(bytes: Buffer): HeldFrame {
  const data = dataOf(bytes);
  if (data === undefined)
    return { bytes, value: undefined, texts: new Map(), choices: [], isLast: false, isComment: true };
  return withValue(bytes, data === '[DONE]' ? undefined : membersOf(parseOrNothing(data)));
}

/** The index of the choice that a channel belongs to. */
export function choiceOf(channel: Channel): number {
  return Number.parseInt(channel.slice(1), 10);
}

/**
 * Splits an event into events with masked texts, in pieces of at most 64 characters, so that the guardrail overlap can
 * be kept at that granularity. Ids and names of tool calls are sent before the texts, `finish_reason` after them.
 */
export function maskedFrames(frame: HeldFrame, masked: ReadonlyMap<Channel, string>): HeldFrame[] {
  const { value, texts } = frame;
  if (value === undefined || texts.size === 0) return [frame];
  const rest = choicesOf(value).map(withoutTexts);
  const pieces = [...masked].flatMap(([channel, text]) =>
    (text.match(/[\s\S]{1,64}/gu) ?? []).map((piece) => textFrame(value, channel, piece)),
  );
  const introduces = rest.filter(hasContent);
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
    if (error instanceof NestingError) throw failed('response', 'a text is nested too deeply');
    throw error;
  }
}

function choicesOf(value: Json | undefined): Json[] {
  const choices = value?.['choices'];
  return Array.isArray(choices)
    ? choices.filter((choice): choice is Json => typeof choice === 'object' && choice !== null)
    : [];
}

/** The position of a choice or tool call in its list: events contain parts of lists, identified by `index`. */
function indexOf(item: unknown, position: number): number {
  const index = (item as { index?: unknown } | null)?.index;
  return typeof index === 'number' && Number.isInteger(index) && index >= 0 && index < MAX_INDEX
    ? index
    : position;
}

// More than any provider allows.
const MAX_INDEX = 1_024;

const frameOf = (value: Json): HeldFrame =>
  withValue(Buffer.from(`data: ${JSON.stringify(value)}\n\n`), value);

/** An event with only this text of one channel. */
function textFrame(value: Json, channel: Channel, text: string): HeldFrame {
  const [index, ...path] = JSON.parse(channel) as [number, ...TextPath];
  const choice = choicesOf(value).find((candidate, position) => indexOf(candidate, position) === index);
  const member = nested(path, text) as Json;
  const { role } = (choice?.['delta'] ?? {}) as Json;
  if (role !== undefined && typeof member['delta'] === 'object')
    member['delta'] = { role, ...member['delta'] };
  return frameOf({ ...value, choices: [{ index, ...member, finish_reason: null }] });
}

function nested([step, ...rest]: TextPath, text: string): unknown {
  if (step === undefined) return text;
  const inner = nested(rest, text);
  if (typeof step === 'string') return { [step]: inner };
  return [typeof inner === 'object' ? { index: step, ...inner } : inner];
}

/** A choice without its texts: ids and names of tool calls, and `finish_reason`. */
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

/** Whether a choice without texts still contains anything that the client needs. */
function hasContent({ index: _index, finish_reason: _reason, logprobs: _logprobs, ...rest }: Json): boolean {
  const isRelevant = (value: unknown, key: string): boolean => {
    if (key === 'role' || key === 'index' || value === null || value === '') return false;
    if (typeof value !== 'object') return true;
    return Object.entries(value as object).some(([inner, member]) => isRelevant(member, inner));
  };
  return isRelevant(rest, '');
}

function endOf(choice: Json): Json {
  const { index, finish_reason: reason } = choice;
  return 'delta' in choice
    ? { index, delta: {}, finish_reason: reason }
    : { index, text: '', finish_reason: reason };
}
