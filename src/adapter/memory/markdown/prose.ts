import { type Fence, fenceAfter } from './split-block.ts';

/** Code in a line: as many backticks at its end as at its beginning. */
const INLINE_CODE = /(?<!`)(`{1,5})(?!`)[^\n]{1,1000}?(?<!`)\1(?!`)/g;
const INDENTED = /^(?: {4}| {0,3}\t)/;
const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)/;
const COMMENT = '<!--';
const COMMENT_END = '-->';

/**
 * The lines of a text without code and HTML comments, whose links are examples or were taken back. Lines of code are empty.
 *
 * @param hasIndentedCode whether lines with four spaces are code, as in Markdown and not in MDX
 */
export function* proseLines(text: string, hasIndentedCode: boolean): Generator<string> {
  const lines = text.split('\n');
  let fence: Fence | undefined;
  let isComment = false;
  let isList = false;
  let isIndentedCode = false;
  let isAfterEmpty = true;
  const lastEnd = lines.findLastIndex((line) => line.includes(COMMENT_END));
  for (const [at, line] of lines.entries()) {
    const next = isComment ? undefined : fenceAfter(line, fence);
    const isFenced = !isComment && (fence !== undefined || next !== undefined);
    if (!isComment) fence = next;
    const isEmpty = line.trim() === '';
    const isIndented = INDENTED.test(line);
    if (LIST_ITEM.test(line)) isList = true;
    // What is indented in a list belongs to an item.
    else if (!isEmpty && !/^\s/.test(line)) isList = false;
    isIndentedCode =
      hasIndentedCode &&
      !isList &&
      (isEmpty ? isIndentedCode : isIndented && (isAfterEmpty || isIndentedCode));
    isAfterEmpty = isEmpty;
    if (isFenced || (isIndentedCode && !isComment)) {
      yield '';
      continue;
    }
    let rest = isComment ? line : line.replace(INLINE_CODE, '');
    let kept = '';
    while (rest !== '') {
      const mark = isComment ? COMMENT_END : COMMENT;
      const found = rest.indexOf(mark);
      // One without an end is text.
      const isMark = found !== -1 && (isComment || lastEnd > at || rest.indexOf(COMMENT_END, found) !== -1);
      if (!isComment) kept += isMark ? rest.slice(0, found) : rest;
      if (!isMark) break;
      rest = rest.slice(found + mark.length);
      isComment = !isComment;
    }
    yield kept;
  }
}
