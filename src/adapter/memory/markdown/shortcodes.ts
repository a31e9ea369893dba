import { type Fence, fenceAfter } from './split-block.ts';

/** Maximum length of a shortcode; a longer one stays text. */
const LENGTH = 1_000;

const ARGUMENTS = `(?:"[^"\\n]{0,${LENGTH}}"|\`[^\`\\n]{0,${LENGTH}}\`|[^"\`{}\\n]){0,${LENGTH}}?`;

/**
 * A shortcode of Hugo (https://gohugo.io/content-management/shortcodes/): `{{< name args >}}`, `{{% name args %}}`, its end
 * `{{< /name >}}`. The name is followed by neither `/*`, which escapes it in documents about shortcodes, nor nothing.
 */
const SHORTCODE = new RegExp(
  `\\{\\{([<%])\\s{0,5}(/?)\\s{0,5}([A-Za-z][\\w./-]{0,100})(${ARGUMENTS})/?\\s{0,5}[>%]\\}\\}`,
  'g',
);

/** The target of a link: `](<shortcode>`, `href="<shortcode>"`. */
const AS_TARGET = new RegExp(`(\\]\\(\\s{0,5}|\\bhref=["'])${SHORTCODE.source}`, 'g');

const ARGUMENT = /(?:([\w-]{1,50})=)?(?:"([^"]*)"|`([^`]*)`|([^\s"`=]+))/g;

/** Parameters whose texts readers see, and those with an address, in themes of Hugo: Hextra, Docsy, Book, PaperMod. */
const TITLES = ['title', 'name', 'summary'];
const ADDRESSES = ['link', 'url', 'href', 'path', 'to', 'ref'];

interface Arguments {
  readonly title: string | undefined;
  /** An address among its parameters, or its only argument if that looks like one. */
  readonly address: string | undefined;
}

function argumentsIn(text: string): Arguments {
  const named = new Map<string, string>();
  const unnamed: string[] = [];
  for (const [, name, quoted, raw, bare] of text.matchAll(ARGUMENT)) {
    const value = quoted ?? raw ?? bare ?? '';
    if (name === undefined) unnamed.push(value);
    else named.set(name, value);
  }
  const of = (names: readonly string[]): string | undefined =>
    names.flatMap((name) => named.get(name) ?? []).find((value) => value.trim() !== '');
  const [only, ...others] = unnamed;
  const isAddress = only !== undefined && others.length === 0 && /[/.#]/.test(only) && !/\s/.test(only);
  return { title: of(TITLES), address: of(ADDRESSES) ?? (isAddress ? only : undefined) };
}

/** What readers see of a shortcode: a title with its link, a title, or nothing. */
function shown(isEnd: boolean, text: string): string {
  if (isEnd) return '';
  const { title, address } = argumentsIn(text);
  if (title === undefined) return '';
  return address === undefined || /[()\s]/.test(address) ? title : `[${title}](${address})`;
}

const LETTER = /[\p{L}\p{N}]/u;

/** A line outside of code without its shortcodes. */
function withoutTags(line: string): string {
  const linked = line.replace(
    AS_TARGET,
    (_all, before: string, _kind, _end, _name, text: string) => before + (argumentsIn(text).address ?? ''),
  );
  return linked.replace(SHORTCODE, (all, _kind, end: string, _name, text: string, at: number) => {
    const kept = shown(end !== '', text);
    const isBetweenWords = LETTER.test(linked[at - 1] ?? '') && LETTER.test(linked[at + all.length] ?? '');
    return kept === '' && isBetweenWords ? ' ' : kept;
  });
}

/** A line that is nothing but a shortcode. */
const WHOLE_LINE = new RegExp(`^\\s{0,20}${SHORTCODE.source}\\s*$`);

/**
 * Shortcodes that contain a script: lines of their begin and end. `{{< name >}}`, whose text Hugo does not render, has a comment that
 * looks like a heading of the first level, and no fence around it: documents have their one such heading outside of shortcodes.
 */
function scriptsIn(lines: readonly string[]): Map<number, number> {
  const scripts = new Map<number, number>();
  const open = new Map<string, number>();
  let lastComment = -1;
  let lastFence = -1;
  for (const [at, line] of lines.entries()) {
    if (/^ {0,3}# /.test(line)) lastComment = at;
    if (fenceAfter(line, undefined) !== undefined) lastFence = at;
    if (!line.includes('{{<')) continue;
    const [, kind, end, name = ''] = WHOLE_LINE.exec(line) ?? [];
    if (kind !== '<') continue;
    const begin = open.get(name);
    if (end === '') open.set(name, at);
    else if (begin !== undefined) {
      open.delete(name);
      if (lastComment > begin && lastFence < begin) scripts.set(begin, at);
    }
  }
  return scripts;
}

/**
 * Removes shortcodes of Hugo: keeps the text between them, their titles, and addresses where they are the target of a link. Scripts
 * in shortcodes become code, so that their comments are not headings. Code is left as it is. Never fails: anything else is text. The time
 * is linear in the length of the text.
 */
export function withoutShortcodes(text: string): string {
  if (!text.includes('{{')) return text;
  const lines = text.split('\n');
  const scripts = scriptsIn(lines);
  const done: string[] = [];
  let fence: Fence | undefined;
  let scriptEnd: number | undefined;
  for (const [at, line] of lines.entries()) {
    const next = fenceAfter(line, fence);
    const isCode = fence !== undefined || next !== undefined;
    fence = next;
    if (isCode || !line.includes('{{')) done.push(line);
    else if (scriptEnd === undefined && scripts.has(at)) {
      scriptEnd = scripts.get(at);
      done.push(FENCE);
    } else if (scriptEnd === at) {
      scriptEnd = undefined;
      done.push(FENCE);
    } else done.push(withoutTags(line));
  }
  return done.join('\n');
}

const FENCE = '```';
