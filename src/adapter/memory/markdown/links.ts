import { posix } from 'node:path';
import { decodedUri } from '../../../core/foreign.ts';
import { type Fence, fenceAfter } from './split-block.ts';

/** Characters of a line that are searched for dependencies. */
const DEPENDENCY_LINE = 4_000;
/** Maximum number of links per document; further ones are ignored. */
const LINKS = 500;
const INLINE = /\]\(\s{0,5}<?([^\s()<>]{1,500})/g;
const DEFINITION = /^ {0,3}\[[^\]]{1,200}\]:\s{0,5}<?([^\s<>]{1,500})/;
const ATTRIBUTE = /\bhref=["']([^"'\s<>]{1,500})["']/g;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** What precedes a link in a sentence that says that one document depends on another. */
const DEPENDS =
  /\b(?:depends?|relies|rely|builds?)\s+(?:up)?on\s+|\b(?:requires?|needs?)\s+|\bdependency:\s*/i;
/** Words between such a phrase and its link, and links that one phrase can have. */
const NEAR = /^\s*(?:(?:the|a|an|also|and|or|both|either|[,;&])\s*)*$/i;
const LINK = /\[[^\]]{0,200}\]\(\s{0,5}<?([^\s()<>]{1,500})[^()]{0,200}\)/g;

/** Links of a line that follow such a phrase directly, or another such link and a comma or "and". */
function dependenciesIn(line: string): string[] {
  if (!DEPENDS.test(line)) return [];
  const found: string[] = [];
  let end = 0;
  let follows = false;
  for (const link of line.matchAll(LINK)) {
    const between = line.slice(end, link.index);
    const phrase = new RegExp(`(?:${DEPENDS.source})`, 'gi');
    let last: number | undefined;
    for (const one of between.matchAll(phrase)) last = one.index + one[0].length;
    follows =
      NEAR.test(last === undefined ? between : between.slice(last)) && (last !== undefined || follows);
    if (follows) found.push(link[1] ?? '');
    end = link.index + link[0].length;
  }
  return found;
}

/**
 * Documents that a document says it depends on: the path or title in `depends_on` of its front matter, and links in
 * sentences such as "depends on [X](x.md)", "requires" or "needs". Paths are in the docs folder.
 *
 * @param named values of `depends_on`
 */
export function dependenciesOf(text: string, path: string, named: readonly string[]): string[] {
  const found = new Set<string>();
  const folder = posix.dirname(path);
  for (const one of named) found.add(/[/.]/.test(one) ? (resolved(one, folder) ?? one) : one);
  let fence: Fence | undefined;
  for (const line of text.split('\n')) {
    const next = fenceAfter(line, fence);
    const isCode = fence !== undefined || next !== undefined;
    fence = next;
    if (isCode || !line.includes('](')) continue;
    for (const target of dependenciesIn(line.slice(0, DEPENDENCY_LINE))) {
      const link = resolved(target, folder);
      if (link !== undefined && link !== path) found.add(link);
    }
    if (found.size >= LINKS) break;
  }
  return [...found].slice(0, LINKS);
}

function targetsOf(line: string): string[] {
  const found = [...line.matchAll(INLINE), ...line.matchAll(ATTRIBUTE)].map(([, target = '']) => target);
  const definition = DEFINITION.exec(line)?.[1];
  return definition === undefined ? found : [...found, definition];
}

/** The target of a link inside the folder, or undefined for other sites, anchors and paths outside of the folder. */
function resolved(target: string, folder: string): string | undefined {
  if (SCHEME.test(target) || target.startsWith('//')) return undefined;
  const path = decodedUri(target.replace(/[?#].*$/s, ''));
  if (path === '' || path.includes('\0')) return undefined;
  const joined = path.startsWith('/') ? posix.normalize(path.slice(1)) : posix.join(folder, path);
  if (joined === '..' || joined.startsWith('../') || joined.startsWith('/')) return undefined;
  return joined.replace(/\/$/, '');
}

/**
 * Links from a document to others: paths in the docs folder without fragment, with their number. Code is ignored.
 *
 * @param path of the document in the docs folder, with `/`
 */
export function linksOf(text: string, path: string): Map<string, number> {
  const links = new Map<string, number>();
  const folder = posix.dirname(path);
  let fence: Fence | undefined;
  for (const line of text.split('\n')) {
    const next = fenceAfter(line, fence);
    const isCode = fence !== undefined || next !== undefined;
    fence = next;
    if (isCode || (!line.includes('](') && !line.includes(']:') && !line.includes('href='))) continue;
    for (const target of targetsOf(line)) {
      const link = resolved(target, folder);
      if (link === undefined || link === path) continue;
      const count = links.get(link);
      if (count === undefined && links.size >= LINKS) return links;
      links.set(link, (count ?? 0) + 1);
    }
  }
  return links;
}

/** The existing document that a link refers to: `guide` may be `guide.md`, `guide.mdx`, `guide/index.md`. */
export function linkedDocument(link: string, exists: (path: string) => boolean): string | undefined {
  const bare = link.replace(/\.html?$/, '');
  const candidates = [
    link,
    `${bare}.md`,
    `${bare}.mdx`,
    ...['index', '_index', 'README'].flatMap((name) => [`${bare}/${name}.md`, `${bare}/${name}.mdx`]),
  ].map((path) => posix.normalize(path));
  return candidates.find((path) => exists(path));
}
