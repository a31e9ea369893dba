import { parse } from 'yaml';
import { membersOf } from '../../../core/foreign.ts';
import { type Chunk, chunksOf, type Section } from './chunk.ts';
import { dependenciesOf, isMdx, linksOf, type SiteBase } from './links.ts';
import { withoutJsx } from './mdx.ts';
import { withoutShortcodes } from './shortcodes.ts';

/** Increase this when the same document would yield different chunks, so that every document is read again. */
export const CHUNKER_VERSION = 7;

export interface MarkdownDocument {
  readonly title: string;
  /** Its description or first paragraph, at most 500 characters. */
  readonly summary: string;
  readonly chunks: readonly PlacedChunk[];
  /** Linked paths in the docs folder, with the number of links to each. */
  readonly links: ReadonlyMap<string, number>;
  /** Paths in the docs folder, or titles, of documents that it says it depends on. */
  readonly dependencies: readonly string[];
}

/** A section in a chunk. */
export interface PlacedSection extends Section {
  /** Line of the chunk's text that it begins at, from 0. */
  readonly at: number;
}

/** A chunk with its place in the file: lines count from 1. */
export interface PlacedChunk extends Chunk {
  readonly sections?: readonly PlacedSection[];
}

const SUMMARY = 500;
/** Of a title in front matter; calls may give one of this length. */
const TITLE = 512;
const MDX_COMMENT = /\{\/\*.{0,1000}?\*\/\}/gs;

/** The chunk with lines of the file, and without the document's title, which precedes the headings anyway. */
function placed(chunk: Chunk, lineOf: (line: number) => number, title: string): PlacedChunk {
  const place = <S extends Section>(section: S): S => ({
    ...section,
    line: lineOf(section.line),
    headings: section.headings[0] === title ? section.headings.slice(1) : section.headings,
  });
  const { sections, ...rest } = chunk;
  const inside = sections?.map((section) => ({ ...place(section), at: section.line - chunk.line }));
  return { ...place(rest), ...(inside !== undefined && { sections: inside }) };
}

/**
 * Normalizes line breaks to line feeds, and replaces NUL and lone surrogates, which not every store can keep.
 */
function cleaned(text: string): string {
  return text
    .replace(/^\ufeff/, '')
    .replace(/\r\n?/g, '\n')
    .replaceAll('\0', '\ufffd')
    .toWellFormed();
}

/** The first chunk without its headings. */
function firstWords(chunks: readonly Chunk[]): string {
  return (chunks[0]?.text ?? '')
    .replace(/^#{1,6} .*$/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`;
}

/**
 * Parses Markdown or MDX. Never fails: malformed parts are treated as text. The time is linear in the length, which the
 * caller must bound (`MEMORY_STORE_LIMITS.documentBytes`).
 *
 * @param path in the docs folder, or the name of the document; the extension `.mdx` means MDX
 * @param title if known from elsewhere; default: from the front matter, the first heading or the file name
 */
export function markdownDocument(
  source: string,
  path: string,
  title?: string,
  base?: SiteBase,
): MarkdownDocument {
  const whole = cleaned(source);
  const matter = frontMatter(whole);
  const body = withoutShortcodes(matter.body);
  const traced = isMdx(path) ? withoutJsx(body) : undefined;
  const text = traced?.text ?? body;
  // Shortcodes leave the lines as they are.
  const before = whole.split('\n').length - body.split('\n').length;
  const lineOf = (line: number): number =>
    before + 1 + (traced === undefined ? line : (traced.lines[line] ?? 0));
  const chunks = chunksOf(text);
  const fileName = path.slice(path.lastIndexOf('/') + 1).replace(/\.mdx?$/i, '');
  const found = title ?? (matter.title && cut(matter.title, TITLE)) ?? chunks[0]?.headings[0] ?? fileName;
  return {
    title: found,
    summary: cut(matter.description ?? firstWords(chunks), SUMMARY),
    chunks: chunks.map((chunk) => placed(chunk, lineOf, found)),
    // MDX without its tags and imports has no links in them.
    links: linksOf(body.replace(MDX_COMMENT, ''), path, base),
    dependencies: dependenciesOf(text, path, matter.dependsOn, base),
  };
}

/** Maximum length; anything longer is text that happens to begin with a rule. */
const FRONT_MATTER = 64 * 1024;
const OPENING = /^(---|\+\+\+)[ \t]*\n/;

/** Spellings of the member that names documents on which this one depends. */
const DEPENDS_ON = ['depends_on', 'dependsOn', 'depends-on'] as const;

interface FrontMatter {
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly dependsOn: readonly string[];
  /** The text after the front matter. */
  readonly body: string;
}

function words(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.replace(/\s+/g, ' ').trim();
  return text === '' ? undefined : text;
}

/** One text, or a list of texts. */
function listed(value: unknown): string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  return list.flatMap((one) => words(one) ?? []);
}

/** Parses the metadata in front of a document's text. Front matter that is not valid YAML is ignored. */
function frontMatter(text: string): FrontMatter {
  const none = { title: undefined, description: undefined, dependsOn: [], body: text };
  const opening = OPENING.exec(text);
  if (opening === null) return none;
  const [first, fence] = opening;
  const head = text.slice(first.length - 1, FRONT_MATTER);
  const end = head.indexOf(`\n${fence}`);
  if (end === -1) return none;
  const lineEnd = head.indexOf('\n', end + 1);
  const closing = head.slice(end + 1, lineEnd === -1 ? undefined : lineEnd);
  if (closing.trimEnd() !== fence) return none;
  const body = lineEnd === -1 ? '' : text.slice(first.length - 1 + lineEnd + 1);
  if (fence === '+++') return { ...none, body };
  try {
    const values: unknown = parse(head.slice(1, end + 1), { logLevel: 'silent', maxAliasCount: 20 });
    const { title, description, ...named } = membersOf(values);
    const dependsOn = DEPENDS_ON.flatMap((name) => listed(named[name]));
    return { title: words(title), description: words(description), dependsOn, body };
  } catch {
    return { ...none, body };
  }
}
