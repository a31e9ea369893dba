import { type Chunk, chunksOf } from './chunk.ts';
import { frontMatter } from './front-matter.ts';
import { linksOf } from './links.ts';
import { withoutJsx } from './mdx.ts';

/** Increase this when the same document would yield different chunks, so that every document is read again. */
export const CHUNKER_VERSION = 2;

export interface MarkdownDocument {
  readonly title: string;
  /** Its description or first paragraph, at most 500 characters. */
  readonly summary: string;
  readonly chunks: readonly Chunk[];
  /** Linked paths in the docs folder, with the number of links to each. */
  readonly links: ReadonlyMap<string, number>;
}

const SUMMARY = 500;

/**
 * Normalizes line breaks to `
 * `, and replaces NUL and lone surrogates, which not every store can keep.
 */
function cleaned(text: string): string {
  return text
    .replace(/^\ufeff/, '')
    .replace(/\r\n?/g, '\n')
    .replaceAll('\0', '\ufffd')
    .toWellFormed();
}

/** Removes the document's title, which precedes the headings anyway. */
function withoutTitle({ text, headings }: Chunk, title: string): Chunk {
  return { text, headings: headings[0] === title ? headings.slice(1) : headings };
}

/** The first chunk without its headings. */
function firstWords(chunks: readonly Chunk[]): string {
  return (chunks[0]?.text ?? '')
    .replace(/^#{1,6} .*$/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
}

function cut(text: string): string {
  return text.length <= SUMMARY ? text : `${text.slice(0, SUMMARY - 1).toWellFormed()}…`;
}

/**
 * Parses Markdown or MDX. Never fails: malformed parts are treated as text. The time is linear in the length, which the
 * caller must bound (`MEMORY_STORE_LIMITS.documentBytes`).
 *
 * @param path in the docs folder, or the name of the document; the extension `.mdx` means MDX
 * @param title if known from elsewhere; default: from the front matter, the first heading or the file name
 */
export function markdownDocument(source: string, path: string, title?: string): MarkdownDocument {
  const matter = frontMatter(cleaned(source));
  const text = path.toLowerCase().endsWith('.mdx') ? withoutJsx(matter.body) : matter.body;
  const chunks = chunksOf(text);
  const fileName = path.slice(path.lastIndexOf('/') + 1).replace(/\.mdx?$/i, '');
  const found = title ?? matter.title ?? chunks[0]?.headings[0] ?? fileName;
  return {
    title: found,
    summary: cut(matter.description ?? firstWords(chunks)),
    chunks: chunks.map((chunk) => withoutTitle(chunk, found)),
    links: linksOf(text, path),
  };
}
