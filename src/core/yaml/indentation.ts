import { YAML_LIMITS, type YamlProblem } from './limits.ts';
import { LineIndex } from './lines.ts';

/** A column where a line above has a key or a dash, which the next line may continue. */
interface Level {
  readonly column: number;
  readonly line: number;
  readonly isDash: boolean;
}

const NO_PLACE = {
  entry: 'a list follows a key that has no other value',
  key: 'indent all keys of one mapping to the same column',
} as const;

/** Where the text at or after `offset` begins, after blank lines and comments. */
export function nextText(text: string, offset: number): number {
  const blank = /(?:\s+|#[^\n]*)*/y;
  blank.lastIndex = offset;
  return blank.test(text) ? blank.lastIndex : offset;
}

/** Whether only spaces precede `offset` on its line. */
export function isFirstOnLine(text: string, offset: number): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === '';
}

/**
 * Describes a line whose column matches no level of the lines above. `offset` is at the line or in the spaces before
 * it. Suggests valid columns by numbers only, because a text that is not YAML may contain secrets anywhere.
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

/** The levels that are open above the line at `begin`: from the deepest level of the nearest line outwards. */
function levelsAbove(text: string, begin: number): Level[] {
  let levels: Level[] = [];
  let lowest = Number.POSITIVE_INFINITY;
  let { line } = new LineIndex(text).position(begin);
  for (let end = begin - 1; end >= 0 && lowest > 0; ) {
    const start = lineStart(text, end);
    const stop = end;
    end = start - 1;
    line -= 1;
    // A line that is indented as deep as the lines below it, or deeper, contributes no level.
    const indent = indentAt(text, start);
    if (indent >= lowest || start + indent >= stop) continue;
    const written = text.slice(start, Math.min(stop, start + YAML_LIMITS.columns)).trimEnd();
    const tail = text.slice(Math.max(start, stop - YAML_LIMITS.columns), stop).trimEnd();
    const found = levelsOf(written, line);
    const first = found.at(-1);
    if (first === undefined) continue;
    // Lines below `|` or `>` are text, whatever their columns.
    if (/[:-] +[|>][-+\d]*(?: +#.*)?$/.test(tail)) {
      levels = levels.filter(({ column }) => column <= (found[0]?.column ?? 0));
    }
    levels.push(...found.filter(({ column }) => column < lowest));
    lowest = Math.min(lowest, first.column);
  }
  return levels;
}

/** The columns of a line's dashes and of the text after them, from right to left; none for a blank line or comment. */
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
