import { isDeepStrictEqual } from 'node:util';
import { Document, isCollection, isMap, isScalar, isSeq, Lexer, parseDocument } from 'yaml';
import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { quoteReferences } from '../init/compose.ts';
import type { ImportedEntry } from '../init/imported.ts';
import type { TargetList } from './target-list.ts';

/**
 * Adds a target at the end of a list, in the notation of the list. Every other byte of the configuration stays as it is.
 *
 * @throws CommandError with exit name `not_ok` if the file would mean something else
 */
export function withTarget(target: ImportedEntry, place: TargetList, file: string): string {
  const { text } = place;
  const [from, to, inserted] = edit(target, place);
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const result = text.slice(0, from) + inserted.replaceAll('\n', eol) + text.slice(to);
  if (!isAdded(text, result, target, place))
    throw new CommandError(
      'not_ok',
      `${file} cannot be changed without changing more than its targets`,
      `add it by hand: - ${JSON.stringify(target.value)}`,
    );
  return result;
}

type Edit = readonly [from: number, to: number, inserted: string];

function edit(target: ImportedEntry, { text, list, pair, section }: TargetList): Edit {
  const json = JSON.stringify(target.value);
  const [start = 0, end = 0] = list.range ?? [];
  const last = list.items.at(-1);
  if (list.flow === true) {
    if (isCollection(last) || isScalar(last)) {
      const at = last.range?.[1] ?? end;
      return [at, at, `, ${json}`];
    }
    if (section.flow === true) return [start, end, `[${json}]`];
    // Behind `targets:`.
    const from = text.slice(0, start).trimEnd().length;
    const key = isScalar(pair.key) ? columnOf(text, pair.key.range?.[0] ?? 0) : 0;
    const rest = lineEnd(text, end);
    return [from, rest, `${text.slice(end, rest).trimEnd()}\n${block(target, key + 2)}`];
  }
  const dash = list.srcToken?.type === 'block-seq' ? list.srcToken.indent : 0;
  const key = isScalar(pair.key) ? columnOf(text, pair.key.range?.[0] ?? 0) : 0;
  const valueEnd = isCollection(last) || isScalar(last) ? (last.range?.[1] ?? end) : end;
  const at = afterComments(text, lineEnd(text, text.slice(0, valueEnd).trimEnd().length), dash, key);
  return [at, at, `\n${block(target, dash)}`];
}

const columnOf = (text: string, offset: number): number => offset - (text.lastIndexOf('\n', offset - 1) + 1);

/** The end of the line, without its line break. */
function lineEnd(text: string, offset: number): number {
  const next = text.indexOf('\n', offset);
  if (next === -1) return text.length;
  return text[next - 1] === '\r' && next - 1 >= offset ? next - 1 : next;
}

/** The end of the comments that belong to the list: those below its last item that are indented as its items, or further. */
function afterComments(text: string, from: number, dash: number, key: number): number {
  let end = from;
  let at = from;
  while (at < text.length) {
    const next = text.indexOf('\n', at);
    if (next === -1) break;
    const stop = lineEnd(text, next + 1);
    const line = text.slice(next + 1, stop);
    const indent = line.search(/\S/);
    if (indent !== -1 && (line[indent] !== '#' || indent < dash || (indent === dash && dash <= key))) break;
    if (indent !== -1) end = stop;
    at = stop;
  }
  return end;
}

function block({ value, source }: ImportedEntry, indent: number): string {
  const document = new Document([value], { aliasDuplicateObjects: false });
  const item = isSeq(document.contents) ? document.contents.items[0] : undefined;
  const args = isMap(item) ? item.getIn(['stdio', 'args'], true) : undefined;
  if (isSeq(args)) args.flow = true;
  quoteReferences(document);
  const lines = [
    ...(source === '' ? [] : [`# From ${escapeControls(source)}`]),
    ...document.toString({ lineWidth: 0 }).split('\n'),
  ];
  return lines
    .filter((line) => line !== '')
    .map((line) => ' '.repeat(indent) + line)
    .join('\n');
}

/** Whether a text is the former one with the target, and no comment is lost. */
function isAdded(before: string, after: string, { value }: ImportedEntry, { path }: TargetList): boolean {
  const [old, result] = [read(before), read(after)];
  if (result.errors.length > 0) return false;
  old.addIn(path, value);
  const kept = commentsIn(after);
  const isKept = (comment: string): boolean => {
    const index = kept.indexOf(comment);
    return index !== -1 && kept.splice(index, 1).length === 1;
  };
  return isDeepStrictEqual(plain(result), plain(old)) && commentsIn(before).every(isKept);
}

const read = (text: string): Document => parseDocument(text, { uniqueKeys: false });

const plain = (document: Document): unknown => document.toJS({ maxAliasCount: -1 }) as unknown;

const commentsIn = (text: string): string[] =>
  [...new Lexer().lex(text)].filter((token) => token.startsWith('#')).map((token) => token.trimEnd());
