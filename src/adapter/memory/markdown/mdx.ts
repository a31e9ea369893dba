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

/** Removes tags and comments from text between fences; inline code is kept. */
function withoutTags(text: string): string {
  let kept = '';
  let from = 0;
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
    kept += text.slice(from, index) + (isBetweenWords ? ' ' : '');
    from = end;
    index = end - 1;
  }
  return kept + text.slice(from);
}

/**
 * Converts MDX to Markdown: removes `import` and `export` statements at the beginning of a paragraph, JSX tags and
 * comments; keeps the text between tags, fences and inline code. Never fails: anything that is not MDX is text.
 */
export function withoutJsx(text: string): string {
  const done: string[] = [];
  let prose: string[] = [];
  let fence: Fence | undefined;
  let isStart = true;
  let isModule = false;
  const flush = (): void => {
    if (prose.length > 0) done.push(withoutTags(prose.join('\n')));
    prose = [];
  };
  for (const line of text.split('\n')) {
    const next = fenceAfter(line, fence);
    if (fence !== undefined || next !== undefined) {
      flush();
      done.push(line);
      isModule = false;
    } else {
      isModule = line.trim() !== '' && (isModule || (isStart && MODULE_LINE.test(line)));
      if (!isModule) prose.push(line);
    }
    isStart = line.trim() === '';
    fence = next;
  }
  flush();
  return done.join('\n');
}
