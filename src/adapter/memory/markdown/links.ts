import { posix } from 'node:path';
import { decodedUri } from '../../../core/foreign.ts';
import { proseLines } from './prose.ts';

/** Characters of a line that are searched for dependencies. */
const DEPENDENCY_LINE = 4_000;
/** Maximum number of links per document; further ones are ignored. */
const LINKS = 500;
/** With one level of parentheses in the target, or anything in `<…>`. */
const INLINE = /\]\(\s{0,5}(?:<([^<>\n]{1,500})>|((?:[^\s()<>]|\([^\s()<>]{0,100}\)){1,500}))/g;
/** `[^1]:` begins a footnote. */
const DEFINITION = /^ {0,3}\[(?!\^)[^\]]{1,200}\]:\s{0,5}(?:<([^<>\n]{1,500})>|([^\s<>]{1,500}))/;
/** A document that MDX imports, or a component shows: `import A from './a.mdx'`, `<Include file="a.md" />`. */
const IMPORT = /^(?:import\b|export\b|\}\s{0,5}from\b)[^'"]{0,500}["']([^"'\s<>]{1,500}\.mdx?)["']/;
const SHOWN = /\b(?:src|file|path)=\{?["']([^"'\s<>]{1,500}\.mdx?)(?:#[^"'\s<>]{0,500})?["']/g;
/** `to` is that of `Link` of Docusaurus. */
const ATTRIBUTE = /\b(?:href|to)=["']([^"'\s<>]{1,500})["']/g;
/** `[[Name]]`, `[[folder/Name#Heading|text]]` of wikis. */
const WIKI = /\[\[([^\]|#\n]{1,300})(?:#[^\]|\n]{0,300})?(?:\|[^\]\n]{0,300})?\]\]/g;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** What precedes a link in a sentence that says that one document depends on another. */
const DEPENDS =
  /\b(?:depends?|relies|rely|builds?)\s+(?:up)?on\s+|\b(?:requires?|needs?)\s+|\bdependency:\s*/i;
/** Words between such a phrase and its link, and links that one phrase can have. */
const NEAR = /^\s*(?:(?:the|a|an|also|and|or|both|either|[,;&])\s*)*$/i;
const LINK = /\[[^\]]{0,200}\]\(\s{0,5}<?([^\s()<>]{1,500})[^()]{0,200}\)/g;

/** The folder of a site, in which Docusaurus keeps documents in a folder: that, or the site itself, is the docs folder. */
const SITE = '@site/';

/** A denial in front of such a phrase, in the same part of its sentence: `does not depend on`, `no longer requires`, `used to need`. */
const DENIED =
  /(?:\b(?:not(?! (?:only|just|merely))|cannot|never|no longer|no more|nothing|none|nobody|neither|nor|without|hardly|rarely|seldom|used to)\b|n['’]t\b)(?:\s+(?!(?:and|or|but|so|because|which|that|if|when|it|this|then)\b)[^\s.,;:!?]+){0,5}\s*$/i;
/** Characters in front of a phrase in which it may be denied. */
const DENIAL = 120;

/**
 * Links of a line that follow such a phrase directly, or another such link and a comma or "and".
 *
 * @param before the line before, if the sentence may begin there
 */
function dependenciesIn(line: string, before: string): string[] {
  if (!DEPENDS.test(line)) return [];
  const found: string[] = [];
  let end = 0;
  let follows = false;
  for (const link of line.matchAll(LINK)) {
    const between = line.slice(end, link.index);
    const phrase = new RegExp(`(?:${DEPENDS.source})`, 'gi');
    let last: number | undefined;
    let isDenied = false;
    for (const one of between.matchAll(phrase)) {
      last = one.index + one[0].length;
      isDenied = DENIED.test(`${before} ${line.slice(0, end + one.index)}`.slice(-DENIAL));
    }
    follows =
      NEAR.test(last === undefined ? between : between.slice(last)) &&
      (last === undefined ? follows : !isDenied);
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
export function dependenciesOf(
  text: string,
  path: string,
  named: readonly string[],
  base?: SiteBase,
): string[] {
  const found = new Set<string>();
  const folder = posix.dirname(path);
  for (const one of named) found.add(/[/.]/.test(one) ? (resolved(one, folder, base) ?? one) : one);
  let before = '';
  for (const whole of proseLines(text, !isMdx(path))) {
    const line = whole.slice(0, DEPENDENCY_LINE);
    for (const target of line.includes('](') ? dependenciesIn(line, before) : []) {
      const link = resolved(target, folder, base);
      if (link !== undefined && link !== path) found.add(link);
    }
    before = line.slice(-DENIAL);
    if (found.size >= LINKS) break;
  }
  return [...found].slice(0, LINKS);
}

/** Whether a document is MDX, which has no code by indentation. */
export function isMdx(path: string): boolean {
  return path.toLowerCase().endsWith('.mdx');
}

function targetsOf(line: string): string[] {
  const found = [INLINE, ATTRIBUTE, SHOWN].flatMap((form) =>
    [...line.matchAll(form)].map(([, target, other = '']) => target ?? other),
  );
  const imported = IMPORT.exec(line)?.[1];
  if (imported !== undefined) found.push(imported);
  for (const [, name = ''] of line.matchAll(WIKI)) if (name.trim() !== '') found.push(`[[${name.trim()}]]`);
  const [, definition, other = definition] = DEFINITION.exec(line) ?? [];
  return other === undefined ? found : [...found, other];
}

/** Where the pages of the folder are on their site, for links that are not relative paths. */
export interface SiteBase {
  /** `https://example.com`, in lower case; undefined if only the path is known. */
  readonly origin: string | undefined;
  /** `/docs`, without a slash at the end: empty for the root. */
  readonly path: string;
}

/** Reads an address such as `https://example.com/docs`, or a path such as `/docs`. Undefined if it is neither. */
export function siteBaseIn(text: string): SiteBase | undefined {
  if (text.startsWith('/')) return { origin: undefined, path: decodedUri(text).replace(/(?<!\/)\/+$/, '') };
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname } = new URL(text);
  if (!/^https?:$/.test(protocol)) return undefined;
  return { origin, path: decodedUri(pathname).replace(/(?<!\/)\/+$/, '') };
}

/** The path of a link on the site. Undefined for other sites. */
function onSite(target: string, base: SiteBase | undefined): string | undefined {
  if (!SCHEME.test(target) && !target.startsWith('//')) return target;
  if (base?.origin === undefined || !URL.canParse(target, base.origin)) return undefined;
  const { origin, pathname } = new URL(target, base.origin);
  const path = decodedUri(pathname);
  return origin === base.origin && (path === base.path || path.startsWith(`${base.path}/`))
    ? pathname
    : undefined;
}

/** An absolute path without that of the site. */
function belowBase(path: string, base: SiteBase | undefined): string {
  if (base === undefined || !path.startsWith(`${base.path}/`)) return path;
  return path.slice(base.path.length);
}

/**
 * The target of a link inside the folder, or undefined for other sites, anchors and paths outside of the folder. That of a wiki is
 * looked up later, by its name.
 */
function resolved(target: string, folder: string, base: SiteBase | undefined): string | undefined {
  if (target.startsWith('[[') || target.startsWith(SITE)) return target;
  const here = onSite(target, base);
  if (here === undefined) return undefined;
  const path = belowBase(decodedUri(here.replace(/[?#].*$/s, '')), base);
  if (path === '' || path.includes('\0')) return undefined;
  const joined = path.startsWith('/') ? posix.normalize(path.slice(1)) : posix.join(folder, path);
  if (joined === '..' || joined.startsWith('../') || joined.startsWith('/')) return undefined;
  return joined.replace(/\/$/, '');
}

/**
 * The path in the docs folder of an address on its site, without fragment. Undefined for other sites; empty for the docs folder itself.
 */
export function pathOfAddress(address: string, base: SiteBase): string | undefined {
  const here = onSite(address, base);
  if (here === undefined || !here.startsWith('/')) return undefined;
  const path = decodedUri(here.replace(/[?#].*$/s, '')).replace(/(?<!\/)\/+$/, '');
  return path === base.path ? '' : resolved(here, '', base);
}

const MAY_LINK = /\]\(|\]:|\[\[|(?:href|to|src|file|path)=|^(?:import|export|\})/;

/**
 * Links from a document to others: paths in the docs folder without fragment, with their number. Code and comments are ignored.
 *
 * @param path of the document in the docs folder, with `/`
 */
export function linksOf(text: string, path: string, base?: SiteBase): Map<string, number> {
  const links = new Map<string, number>();
  const folder = posix.dirname(path);
  for (const line of proseLines(text, !isMdx(path))) {
    if (!MAY_LINK.test(line)) continue;
    for (const target of targetsOf(line)) {
      const link = resolved(target, folder, base);
      if (link === undefined || link === path) continue;
      const count = links.get(link);
      if (count === undefined && links.size >= LINKS) return links;
      links.set(link, (count ?? 0) + 1);
    }
  }
  return links;
}

/** The documents of a folder, as what links refer to. */
export class LinkedDocuments {
  readonly #paths: ReadonlySet<string>;
  /** By name in lower case, without folder and extension; undefined if several have it. */
  #byName: Map<string, string | undefined> | undefined;

  constructor(paths: Iterable<string>) {
    this.#paths = new Set(paths);
  }

  /** The document that a link refers to: `guide` may be `guide.md`, `guide.mdx`, `guide/index.md`; `[[Guide]]` may be in any folder. */
  find(link: string): string | undefined {
    if (link.startsWith(SITE)) {
      const path = link.slice(SITE.length);
      return this.#at(path) ?? this.#at(path.slice(path.indexOf('/') + 1));
    }
    const name = /^\[\[(.+)\]\]$/s.exec(link)?.[1];
    return name === undefined ? this.#at(link) : (this.#at(name) ?? this.#named(name));
  }

  #at(link: string): string | undefined {
    const bare = link.replace(/\.html?$/, '');
    const candidates = [
      link,
      `${bare}.md`,
      `${bare}.mdx`,
      ...['index', '_index', 'README'].flatMap((name) => [`${bare}/${name}.md`, `${bare}/${name}.mdx`]),
    ].map((path) => posix.normalize(path));
    return candidates.find((path) => this.#paths.has(path));
  }

  /** Wikis have one page of each name. */
  #named(name: string): string | undefined {
    if (this.#byName === undefined) {
      this.#byName = new Map();
      for (const path of this.#paths) {
        const own = nameOf(path);
        this.#byName.set(own, this.#byName.has(own) ? undefined : path);
      }
    }
    return this.#byName.get(nameOf(name));
  }
}

const nameOf = (path: string): string =>
  posix
    .basename(path)
    .replace(/\.mdx?$/i, '')
    .toLowerCase();
