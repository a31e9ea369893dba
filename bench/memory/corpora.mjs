// The corpora: pages of packages that `npm ci` installs, and the manual of the installed npm.
import { existsSync, globSync, readFileSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { description, firstSentence, plain } from './questions.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READMES = 'node_modules/**/[Rr][Ee][Aa][Dd][Mm][Ee].md';
/** Number of pages of the development corpus, first ones by path. */
const DEVELOPMENT_PAGES = 300;

function titleOf(text, file) {
  return plain(/^#{1,2} (.+)$/m.exec(text)?.[1] ?? '') || file;
}

/** One page per question, in file order. `ask` returns the question and the page without it. */
function pagesOf(files, ask, limit = Number.POSITIVE_INFINITY) {
  const pages = [];
  const seen = new Set();
  for (const file of files) {
    if (pages.length >= limit) break;
    const text = readFileSync(join(ROOT, file), 'utf8');
    const cut = ask(text, file);
    if (cut === undefined || seen.has(cut.question)) continue;
    seen.add(cut.question);
    const name = basename(file);
    const shown = /^readme/i.test(name) ? join(basename(dirname(file)), name) : file;
    pages.push({ path: file, file: shown, title: titleOf(cut.rest, shown), ...cut });
  }
  return pages;
}

const filesOf = (pattern, cwd = ROOT) => globSync(pattern, { cwd }).sort();
const sentencesOf = (pattern) => pagesOf(filesOf(pattern), firstSentence);
const developmentPages = () => pagesOf(filesOf(READMES), firstSentence, DEVELOPMENT_PAGES);

/** READMEs, queried by the `description` in their package.json: those of the development corpus, or the others. */
function packagePages(ofDevelopment) {
  const development = new Set(developmentPages().map(({ path }) => path));
  const names = new Set();
  const files = filesOf(READMES).filter((file) => development.has(file) === ofDevelopment);
  return pagesOf(files, (text, file) => {
    const manifest = join(ROOT, dirname(file), 'package.json');
    const { name, description: said } = existsSync(manifest)
      ? JSON.parse(readFileSync(manifest, 'utf8'))
      : {};
    if (typeof name !== 'string' || typeof said !== 'string' || names.has(name)) return undefined;
    names.add(name);
    return description(text, said);
  }).map((page) => ({ ...page, file: dirname(page.path), title: titleOf(page.rest, dirname(page.path)) }));
}

/** The npm of this machine, which is not a dependency but was needed to install them. */
function npmFolder() {
  const inPath = (env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'npm'));
  const program = [env.npm_execpath, ...inPath].find((file) => file !== undefined && existsSync(file));
  return program === undefined ? '' : join(dirname(realpathSync(program)), '..');
}

/** Pages with a `description` in their front matter; none if npm is installed without its manual. */
function npmManual() {
  const docs = join(npmFolder(), 'docs/content');
  const seen = new Set();
  return filesOf('**/*.md', docs).flatMap((file) => {
    const text = readFileSync(join(docs, file), 'utf8');
    const matter = parse(/^---\n(.*?)\n---\n/s.exec(text)?.[1] ?? '') ?? {};
    const cut = description(text, String(matter.description ?? ''));
    if (cut === undefined || seen.has(cut.question)) return [];
    seen.add(cut.question);
    return [{ path: file, file, title: String(matter.title ?? file), ...cut }];
  });
}

/** Nothing in the product was fitted to these. */
export const HELD_OUT = {
  'first sentence': {
    fastify: () => sentencesOf('node_modules/fastify/docs/**/*.md'),
    undici: () => sentencesOf('node_modules/undici/docs/**/*.md'),
    pino: () => sentencesOf('node_modules/pino/docs/*.md'),
  },
  description: {
    packages: () => packagePages(false),
    'npm manual': npmManual,
  },
};

/** For trying changes. */
export const DEVELOPMENT = {
  'first sentence': { readmes: developmentPages },
  description: { 'readmes, described': () => packagePages(true) },
};
