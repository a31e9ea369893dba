/** An opening fence, with the text before it on its line (quotes, list markers) and after it. */
const FENCE = /^([ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(`{3,}|~{3,})(.*)$/;
/** Longest line that can be a fence. */
const FENCE_LINE = 500;

export interface Fence {
  readonly indent: string;
  readonly marker: string;
  readonly info: string;
}

/** The fence that is open after the line, given the one that was open before it. */
export function fenceAfter(line: string, open: Fence | undefined): Fence | undefined {
  if (line.length > FENCE_LINE) return open;
  const match = FENCE.exec(line);
  if (match === null) return open;
  const [, indent = '', marker = '', info = ''] = match;
  if (open === undefined) {
    if (marker.startsWith('`') && info.includes('`')) return undefined;
    return { indent: indent.replace(/[^\s>]/g, ' '), marker, info };
  }
  const isEnd = marker[0] === open.marker[0] && marker.length >= open.marker.length && info.trim() === '';
  return isEnd ? undefined : open;
}

/** Where to cut a line that is too long: at a space in its last quarter, never inside a character. */
function cutAt(line: string, limit: number): number {
  const space = line.lastIndexOf(' ', limit);
  if (space > limit * 0.75) return space + 1;
  const code = line.charCodeAt(limit - 1);
  return code >= 0xd800 && code <= 0xdbff ? limit - 1 : limit;
}

function* pieces(raw: string, limit: number): Generator<string> {
  for (const line of raw.split(/(?<=\n)/)) {
    let rest = line;
    while (rest.length > limit) {
      const cut = cutAt(rest, limit);
      yield rest.slice(0, cut);
      rest = rest.slice(cut);
    }
    if (rest !== '') yield rest;
  }
}

/**
 * Splits a block that is too long, between lines if possible. A fence that is split is closed in its piece and opened
 * again, with its language, in the next one.
 *
 * @param limit characters per piece, not counting the added fence lines
 * @returns pieces with the line of the block, from 0, that they continue with
 */
export function splitBlock(raw: string, limit: number): { readonly text: string; readonly line: number }[] {
  const done: { text: string; line: number }[] = [];
  let current = '';
  let begin = 0;
  let line = 0;
  let fence: Fence | undefined;
  for (const piece of pieces(raw, limit)) {
    if (current.length + piece.length > limit && current !== '') {
      const text = fence === undefined ? current : `${endLine(current)}${fence.indent}${fence.marker}\n`;
      done.push({ text, line: begin });
      current = fence === undefined ? '' : `${fence.indent}${fence.marker}${fence.info}\n`;
      begin = line;
    }
    current += piece;
    if (piece.endsWith('\n')) line += 1;
    fence = fenceAfter(piece.replace(/\n$/, ''), fence);
  }
  if (current !== '') done.push({ text: current, line: begin });
  return done;
}

function endLine(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
