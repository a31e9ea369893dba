import { isUtf8 } from 'node:buffer';
import { jsonIn } from '../../../../core/foreign.ts';
import { type Edit, edit, elements, members, type Span } from '../../../kernel/json/json-text.ts';
import { ALL, type Change, type EventTexts, IGNORED, IN_ORDER } from '../../formats/event-texts.ts';
import { eventOf } from '../../frames.ts';
import { type Members, membersOf } from '../../json-members.ts';
import type { TextPath } from '../../texts.ts';
import type { Echo } from '../echo.ts';
import { uncheckable } from '../guarded-text.ts';
import { withoutRepetitions } from '../repeated-members.ts';
import { type EventContent, eventTexts, readEvent } from './event-content.ts';

/** One event, and what its format says about it. */
export interface EventFrame {
  /** What the client gets of it, unless it is changed: nothing that was not read. */
  readonly bytes: Buffer;
  /** Its name, the field `event`. */
  readonly name: string | undefined;
  /** Its data; undefined for a comment. */
  readonly data: string | undefined;
  /** The data as a JSON object; undefined if it is something else. */
  readonly value: Members | undefined;
  readonly content: EventContent;
}

/** Reads an event. Throws an `AppError` (502) if it is nested too deeply to check, or no text in UTF-8. */
export function readFrame(received: Buffer, format: EventTexts, echo?: Echo): EventFrame {
  if (!isUtf8(received)) throw uncheckable('response', 'the stream is not valid UTF-8');
  const { data, type: name } = eventOf(received) ?? {};
  const parsed = data === undefined ? undefined : jsonIn(data);
  const members = membersOf(parsed);
  const value = Array.isArray(parsed) ? undefined : members;
  const content = withName(contentOf(), name === value?.['type'] ? undefined : name);
  // Of members with the same name, only the last one was read.
  const unique = data === undefined || members === undefined ? undefined : withoutRepetitions(data, parsed);
  const sent = unique ?? data;
  const isAsRead = unique === undefined && USUAL.test(received.toString('latin1'));
  return { bytes: isAsRead ? received : written(name, sent), name, data: sent, value, content };

  function contentOf(): EventContent {
    if (data === undefined) return { ...IGNORED, texts: [] };
    if (members === undefined) return rawContent(typeof parsed === 'string' ? parsed : data);
    if (value !== undefined) return readEvent(format, value, echo);
    return { ...IN_ORDER, texts: eventTexts(members, () => ({ part: 'content' })) };
  }
}

/** Nearly every event. */
const USUAL = /^(?:event: [\w.]{1,128}\n)?data: [^\r\n]*\n\n$/;

/** Names that say nothing: the default of the standard, and what APIs call errors and pings. */
const PLAIN_NAMES: ReadonlySet<string> = new Set(['message', 'error', 'ping']);

/** A name is usually the `type` of the data. Any other is a text that cannot be replaced: clients choose by it what an event is. */
const withName = (content: EventContent, name: string | undefined): EventContent =>
  name === undefined || name === '' || PLAIN_NAMES.has(name)
    ? content
    : { ...content, texts: [...content.texts, { part: 'other', form: 'fixed', path: [], text: name }] };

/**
 * An event as it is sent to the client (HTML standard, "Server-sent events"): its name and its data. Comments, ids and unknown
 * fields are not content of any API, and nobody has read them.
 */
function written(name: string | undefined, data: string | undefined): Buffer {
  // A comment keeps the connection open.
  if (data === undefined) return Buffer.from(':\n\n');
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}`);
  if (name !== undefined && name !== '') lines.unshift(`event: ${name}`);
  return Buffer.from(`${lines.join('\n')}\n\n`);
}

/** Data of no format is checked as it is, except the end marker of OpenAI's streams. */
function rawContent(data: string): EventContent {
  const texts = data === '[DONE]' || data === '' ? [] : [{ part: 'content' as const, path: [], text: data }];
  return { texts, lanes: [ALL], follows: [ALL] };
}

/** The bytes of an event with these values; the rest of its data stays as it was sent. With an empty path, `json` is the text itself. */
export function changedFrame({ bytes, name, data = '' }: EventFrame, changes: readonly Change[]): Buffer {
  if (changes.length === 0) return bytes;
  const raw = changes.find(({ path }) => path.length === 0);
  if (raw !== undefined) return written(name, raw.json);
  // Of changes of the same value the first counts: two texts of one object share their derived values.
  const edits = new Map<number, Edit>();
  for (const { path, json } of changes) {
    const span = spanAt(data, path);
    if (span !== undefined && !edits.has(span.start)) edits.set(span.start, { ...span, text: json });
  }
  return written(name, edit(data, withoutNested([...edits.values()])));
}

/** A removed list of citations may contain titles, which are texts. */
function withoutNested(edits: readonly Edit[]): Edit[] {
  const isInside = (inner: Edit, outer: Edit): boolean =>
    inner !== outer && outer.start <= inner.start && inner.end <= outer.end;
  return edits.filter((inner) => !edits.some((outer) => isInside(inner, outer)));
}

/** The span of the value at a path of member names and list indexes. */
function spanAt(text: string, path: TextPath): Span | undefined {
  let span: Span | undefined = { start: 0, end: text.length };
  for (const step of path) {
    if (span === undefined) return undefined;
    const { start } = span as Span;
    // Of duplicate members the last one counts, as for `JSON.parse`.
    span =
      typeof step === 'number'
        ? elements(text, start)[step]
        : members(text, start).findLast(([name]) => name === step)?.[1];
  }
  return span;
}
