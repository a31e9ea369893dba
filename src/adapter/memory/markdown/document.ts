import { type Chunk, chunksOf } from './chunk.ts';
import { frontMatter } from './front-matter.ts';
import { linksOf } from './links.ts';
import { withoutJsx } from './mdx.ts';

/** Changes whenever the same document would give other chunks: then every document is read again. */
export const CHUNKER_VERSION = 2;

export interface MarkdownDocument {
  readonly title: string;
  /** What the document is about, at most 500 characters: its description, or its first paragraph. */
  readonly summary: string;
  readonly chunks: readonly Chunk[];
  /** Paths in the docs folder and how often each is linked. */
  readonly links: ReadonlyMap<string, number>;
}

const SUMMARY = 500;

/** Line ends as `\n`; NUL and lone surrogates, which not every store can keep, as the replacement character. */
function cleaned(text: string): string {
  return text
    .replace(/^\ufeff/, '')
    .replace(/\r\n?/g, '\n')
    .replaceAll('\0', '\ufffd')
    .toWellFormed();
}

/** Without the document's title, which stands before the headings anyway. */
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
 * Reads Markdown or MDX. Never fails: what is not well-formed is text. Time grows with the length only; the length
 * is the caller's to bound (`MEMORY_STORE_LIMITS.documentBytes`).
 * @param path in the docs folder, or the name of the document; `.mdx` at its end means MDX
 * @param title known from elsewhere; otherwise of the front matter, the first heading or the file name
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
