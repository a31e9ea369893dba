import { YAML_LIMITS, type YamlProblem } from './limits.ts';
import { LineIndex } from './lines.ts';

/** A column at which lines above have a key or a dash, which another line may stand below. */
interface Level {
  readonly column: number;
  readonly line: number;
  readonly isDash: boolean;
}

const NO_PLACE = {
  entry: 'a list stands below a key that has no other value',
  key: 'line the keys of one mapping up in the same column',
} as const;

/** Where the text at or after `offset` begins; blank lines and comments are passed over. */
export function nextText(text: string, offset: number): number {
  const blank = /(?:\s+|#[^\n]*)*/y;
  blank.lastIndex = offset;
  return blank.test(text) ? blank.lastIndex : offset;
}

/** Whether nothing but blanks stands before `offset` on its line. */
export function isFirstOnLine(text: string, offset: number): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === '';
}

/**
 * The problem of a line that stands in no column where the lines above would have it. `offset` is at it or in the
 * blanks before it. Says where it could stand, in numbers only: a text that is not YAML may hold secrets anywhere.
 */
export function misplacedLine(text: string, offset: number, message = 'wrong indentation'): YamlProblem {
  const at = nextText(text, offset);
  const begin = lineStart(text, at);
  const column = at - begin;
  const isDash = /-(?:\s|$)/y.test(text.slice(at, at + 2));
  const levels = levelsAbove(text, begin).filter(
    (level) => level.isDash === isDash && level.column !== column,
  );
  const deeper = levels.filter((level) => level.column > column).at(-1);
  const outer = levels.find((level) => level.column < column);
  const places = [deeper, outer].filter((level) => level !== undefined);
  return {
    code: 'AGW0001',
    message,
    start: at,
    end: at + (/[\w-]+/y.exec(text.slice(at, at + 80))?.[0].length ?? 1),
    path: [],
    label: `indented by ${spaces(column)}`,
    help:
      places.length === 0
        ? NO_PLACE[isDash ? 'entry' : 'key']
        : `indent it like ${places.map(inWords).join(', or like ')}`,
  };
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}

function indentAt(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ') at++;
  return at - start;
}

function inWords({ column, line }: Level): string {
  return `line ${line} (${spaces(column)})`;
}

function spaces(count: number): string {
  return count === 1 ? '1 space' : `${count} spaces`;
}

/** The levels that are open above the line at `begin`: the deepest of the nearest line first, then outwards. */
function levelsAbove(text: string, begin: number): Level[] {
  let levels: Level[] = [];
  let lowest = Number.POSITIVE_INFINITY;
  let { line } = new LineIndex(text).position(begin);
  for (let end = begin - 1; end >= 0 && lowest > 0; ) {
    const start = lineStart(text, end);
    const stop = end;
    end = start - 1;
    line -= 1;
    // Most lines are as deep as those below them, or deeper: nothing of them counts.
    const indent = indentAt(text, start);
    if (indent >= lowest || start + indent >= stop) continue;
    const written = text.slice(start, Math.min(stop, start + YAML_LIMITS.columns)).trimEnd();
    const tail = text.slice(Math.max(start, stop - YAML_LIMITS.columns), stop).trimEnd();
    const found = levelsOf(written, line);
    const first = found.at(-1);
    if (first === undefined) continue;
    // What hangs below `|` or `>` is text, whatever its columns.
    if (/[:-] +[|>][-+\d]*(?: +#.*)?$/.test(tail)) {
      levels = levels.filter(({ column }) => column <= (found[0]?.column ?? 0));
    }
    levels.push(...found.filter(({ column }) => column < lowest));
    lowest = Math.min(lowest, first.column);
  }
  return levels;
}

/** The columns of a line's dashes and of what follows them, from right to left; none of a blank line or comment. */
function levelsOf(written: string, line: number): Level[] {
  const [lead = '', indent = '', dashes = ''] = /^( *)((?:-(?: +|$))*)/.exec(written) ?? [];
  const rest = written.slice(lead.length);
  const found: Level[] = [];
  let column = indent.length;
  for (const [dash] of dashes.matchAll(/- */g)) {
    found.unshift({ column, line, isDash: true });
    column += dash.length;
  }
  if (rest !== '' && !rest.startsWith('#')) found.unshift({ column, line, isDash: false });
  return found;
}
