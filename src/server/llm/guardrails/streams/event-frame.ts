import { jsonIn } from '../../../../core/foreign.ts';
import { type Edit, edit, elements, members, type Span } from '../../../kernel/json/json-text.ts';
import { ALL, type Change, type EventTexts, IGNORED, IN_ORDER } from '../../formats/event-texts.ts';
import { dataOf } from '../../frames.ts';
import { type Members, membersOf } from '../../json-members.ts';
import type { TextPath } from '../../texts.ts';
import type { Echo } from '../echo.ts';
import { withoutRepetitions } from '../repeated-members.ts';
import { type EventContent, eventTexts, readEvent } from './event-content.ts';

/** The bytes of one event, and what its format says about it. */
export interface EventFrame {
  readonly bytes: Buffer;
  /** Its data; undefined for a comment. */
  readonly data: string | undefined;
  /** The data as a JSON object; undefined if it is something else. */
  readonly value: Members | undefined;
  readonly content: EventContent;
}

/** Reads an event. Throws an `AppError` (503) if it is nested too deeply to check. */
export function readFrame(bytes: Buffer, format: EventTexts, echo?: Echo): EventFrame {
  const data = dataOf(bytes);
  const others = otherLines(bytes);
  const parsed = data === undefined ? undefined : jsonIn(data);
  const members = membersOf(parsed);
  const value = Array.isArray(parsed) ? undefined : members;
  const content = withLines(contentOf(), others);
  // Of members with the same name, only the last one was read.
  const unique = data === undefined || members === undefined ? undefined : withoutRepetitions(data, parsed);
  return unique === undefined
    ? { bytes, data, value, content }
    : { bytes: withData(bytes, unique), data: unique, value, content };

  function contentOf(): EventContent {
    if (data === undefined) return { ...IGNORED, texts: [] };
    if (members === undefined) return rawContent(typeof parsed === 'string' ? parsed : data);
    if (value !== undefined) return readEvent(format, value, echo);
    return { ...IN_ORDER, texts: eventTexts(members, () => ({ part: 'content' })) };
  }
}

/** Server-sent events (HTML standard, "Interpreting an event stream"). A byte order mark may begin the first line. */
const KNOWN_LINE = /^\uFEFF?(?:data(?::|$)|(?:event|id): ?[\w.:/+=-]{0,128}$|retry: ?\d{1,9}$|:?$)/;

/** Nearly every event. */
const USUAL = /^(?:event: [\w.]{1,128}\n)?data: [^\r\n]*\n\n$/;

/** Lines of an event that are no data, with a text: comments, unknown fields, and ids and types that are none. */
function otherLines(bytes: Buffer): string {
  if (USUAL.test(bytes.toString('latin1'))) return '';
  const lines = bytes.toString('utf8').split(/\r\n|\r|\n/);
  return lines.filter((line) => !KNOWN_LINE.test(line)).join('\n');
}

const withLines = (content: EventContent, text: string): EventContent =>
  text === ''
    ? content
    : { ...content, texts: [...content.texts, { part: 'other', form: 'fixed', path: [], text }] };

/** Data of no format is checked as it is, except the end marker of OpenAI's streams. */
function rawContent(data: string): EventContent {
  const texts = data === '[DONE]' || data === '' ? [] : [{ part: 'content' as const, path: [], text: data }];
  return { texts, lanes: [ALL], follows: [ALL] };
}

/**
 * The bytes of an event with these values; everything else in it stays as it was sent. With an empty path, `json` is the text
 * itself.
 */
export function changedFrame({ bytes, data = '' }: EventFrame, changes: readonly Change[]): Buffer {
  if (changes.length === 0) return bytes;
  const raw = changes.find(({ path }) => path.length === 0);
  if (raw !== undefined) return withData(bytes, raw.json);
  // Of changes of the same value the first counts: two texts of one object share their derived values.
  const edits = new Map<number, Edit>();
  for (const { path, json } of changes) {
    const span = spanAt(data, path);
    if (span !== undefined && !edits.has(span.start)) edits.set(span.start, { ...span, text: json });
  }
  return withData(bytes, edit(data, withoutNested([...edits.values()])));
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

/** The event with other data and the same other fields. */
function withData(bytes: Buffer, data: string): Buffer {
  const lines = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\r|\n/);
  const kept = lines.filter((line) => line !== '' && line !== 'data' && !line.startsWith('data:'));
  const written = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}`);
  return Buffer.from(`${[...kept, ...written].join('\n')}\n\n`);
}
