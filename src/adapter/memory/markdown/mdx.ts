import { type Fence, fenceAfter } from './split-block.ts';

/** Maximum length of a tag; a longer one stays text. */
const TAG = 1_000;
const TAG_BEGINS = /[A-Za-z/>]/;
const MODULE_LINE = /^(?:import\s|export\s)/;
const LETTER = /[\p{L}\p{N}]/u;

/** The end of the tag that begins at `<`, or -1. Skips quotes and braces of attributes. */
function tagEnd(text: string, start: number): number {
  if (!TAG_BEGINS.test(text[start + 1] ?? '')) return -1;
  let quote: string | undefined;
  let braces = 0;
  const last = Math.min(text.length, start + TAG);
  for (let index = start + 1; index < last; index += 1) {
    const char = text[index];
    if (quote !== undefined) {
      if (char === quote) quote = undefined;
    } else if (braces === 0 && (char === '"' || char === "'")) quote = char;
    else if (char === '{') braces += 1;
    else if (char === '}') braces -= 1;
    else if (braces > 0) continue;
    else if (char === '>') return index + 1;
    else if (char === '<' || char === '`') return -1;
  }
  return -1;
}

/** A text with the line, from 0, that each of its lines is from. */
export interface TracedText {
  readonly text: string;
  readonly lines: readonly number[];
}

/** Removes tags and comments from text between fences; inline code is kept. */
function withoutTags(text: string): TracedText {
  let kept = '';
  let from = 0;
  const lines: number[] = [];
  let line = 0;
  /** Of the line that is being kept: where its first letter is from. */
  let begin: number | undefined;
  const keep = (until: number): void => {
    for (let at = from; at < until; at += 1) {
      if (text[at] === '\n') {
        lines.push(begin ?? line);
        begin = undefined;
        line += 1;
      } else if (begin === undefined && text[at] !== ' ') begin = line;
    }
    kept += text.slice(from, until);
  };
  for (let index = 0; index < text.length; index += 1) {
    const char = text[index];
    let end = -1;
    if (char === '`') {
      const close = text.indexOf('`', index + 1);
      if (close !== -1 && close - index < TAG) index = close;
    } else if (char === '<') end = tagEnd(text, index);
    else if (char === '{' && text.startsWith('{/*', index)) {
      const close = text.slice(index, index + TAG).indexOf('*/}');
      if (close !== -1) end = index + close + 3;
    }
    if (end === -1) continue;
    // Inspects the source before the tag, not the result: reading a growing string copies it each time.
    const isBetweenWords = LETTER.test(text[index - 1] ?? '') && LETTER.test(text[end] ?? '');
    keep(index);
    if (isBetweenWords) kept += ' ';
    for (let at = index; at < end; at += 1) if (text[at] === '\n') line += 1;
    from = end;
    index = end - 1;
  }
  keep(text.length);
  lines.push(begin ?? line);
  return { text: kept, lines };
}

/**
 * Converts MDX to Markdown: removes `import` and `export` statements at the beginning of a paragraph, JSX tags and
 * comments; keeps the text between tags, fences and inline code. Never fails: anything that is not MDX is text.
 */
export function withoutJsx(text: string): TracedText {
  const done: string[] = [];
  const lines: number[] = [];
  let prose: string[] = [];
  let proseLines: number[] = [];
  let fence: Fence | undefined;
  let isStart = true;
  let isModule = false;
  const flush = (): void => {
    if (prose.length > 0) {
      const cleaned = withoutTags(prose.join('\n'));
      done.push(cleaned.text);
      for (const at of cleaned.lines) lines.push(proseLines[at] ?? 0);
    }
    prose = [];
    proseLines = [];
  };
  for (const [at, line] of text.split('\n').entries()) {
    const next = fenceAfter(line, fence);
    if (fence !== undefined || next !== undefined) {
      flush();
      done.push(line);
      lines.push(at);
      isModule = false;
    } else {
      isModule = line.trim() !== '' && (isModule || (isStart && MODULE_LINE.test(line)));
      if (!isModule) {
        prose.push(line);
        proseLines.push(at);
      }
    }
    isStart = line.trim() === '';
    fence = next;
  }
  flush();
  return { text: done.join('\n'), lines };
}
