// Documentation sets as folders of Markdown, and the questions that can be taken from them. The rules were stated before
// the first run:
//   sentence  the first sentence of a page's prose
//   heading   the last two headings of a page, from the second level on, that have at least three words
//   link      the text of a link in another page, with at least three words, unless it is a title or heading of the page
//             that it leads to, or the same text leads elsewhere too
//   written   questions of paraphrases.mjs
// Sentences and headings are removed from their page before it is indexed. A question counts as answered if a result
// belongs to the page. All questions of a set are asked to one index.
import { globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { PARAPHRASES } from './paraphrases.mjs';
import { firstSentence, plain } from './questions.mjs';

/** Announcements and generated pages are not documentation. */
const LEFT_OUT =
  /(^|\/)(blog|api|node_modules|\.github)\/|changelog|^(releases|team|blog|acknowledgements)\.md$/i;
const SHORTEST_PAGE = 200;
const FEWEST_WORDS = 3;
const HEADINGS = 2;

const wordCount = (text) => text.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
const same = (text) => plain(text).toLowerCase();

/** Headings outside of fences, with their line. */
function headingsIn(text) {
  const found = [];
  let fence;
  for (const line of text.split('\n')) {
    const mark = /^\s*(```|~~~)/.exec(line)?.[1];
    if (mark !== undefined) fence = fence === undefined ? mark : fence === mark ? undefined : fence;
    const heading = fence === undefined ? /^(#{1,6}) +(.+)$/.exec(line) : null;
    if (heading !== null)
      found.push({ line, depth: heading[1].length, text: plain(heading[2].replace(/\{[^}]*\}/g, '')) });
  }
  return found;
}

/** The page that a link leads to, or undefined. */
function target(link, from, known) {
  const path = link.replace(/[?#].*$/, '').replace(/\.html$/, '');
  if (path === '' || /^[a-z]+:/i.test(path)) return undefined;
  const base = path.startsWith('/') ? path.slice(1) : posix.join(posix.dirname(from), path);
  return [base, base.replace(/^docs\//, '')]
    .flatMap((name) => [name, `${name}.md`, posix.join(name, 'index.md')])
    .find((name) => known.has(name));
}

/** A set: pages as they are indexed, and questions with the pages that answer them. */
export function documentationSet(name, folder) {
  const files = globSync('**/*.md', { cwd: folder }).map((file) => file.replaceAll('\\', '/'));
  const texts = new Map();
  for (const file of files.filter((one) => !LEFT_OUT.test(one)).sort()) {
    const text = readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n');
    if (plain(text).length >= SHORTEST_PAGE) texts.set(file, text);
  }
  const questions = [];
  const pages = [];
  const headings = new Map([...texts].map(([file, text]) => [file, headingsIn(text)]));
  for (const [file, text] of texts) {
    const title = headings.get(file)[0]?.text ?? file;
    let rest = text;
    const sentence = firstSentence(text);
    if (sentence !== undefined) {
      questions.push({ kind: 'sentence', question: sentence.question, files: [file] });
      rest = sentence.rest;
    }
    const long = headings.get(file).filter((one) => one.depth > 1 && wordCount(one.text) >= FEWEST_WORDS);
    for (const { line, text: question } of long.slice(-HEADINGS)) {
      questions.push({ kind: 'heading', question, files: [file] });
      rest = rest
        .split('\n')
        .filter((one) => one !== line)
        .join('\n');
    }
    pages.push({ file, title, rest });
  }
  questions.push(...links(texts, headings));
  for (const [question, answers] of PARAPHRASES[name] ?? [])
    questions.push({ kind: 'written', question, files: answers });
  const asked = Map.groupBy(questions, ({ question }) => same(question));
  return { name, pages, questions: [...asked.values()].flatMap((list) => (list.length === 1 ? list : [])) };
}

function links(texts, headings) {
  const targets = new Map();
  for (const [file, text] of texts)
    for (const [, label, link] of text.matchAll(/(?<!!)\[([^\]\n]{1,200})\]\(([^)\s]+)\)/g)) {
      const question = plain(label);
      if (wordCount(question) < FEWEST_WORDS) continue;
      const page = target(link, file, texts);
      if (page === undefined || page === file) continue;
      const known = targets.get(same(question)) ?? { question, pages: new Set() };
      known.pages.add(page);
      targets.set(same(question), known);
    }
  return [...targets.values()].flatMap(({ question, pages }) => {
    const [page] = pages;
    const isHeading = headings.get(page).some(({ text }) => same(text) === same(question));
    return pages.size > 1 || isHeading ? [] : [{ kind: 'link', question, files: [page] }];
  });
}
