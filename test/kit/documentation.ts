import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { marked, type Tokens } from 'marked';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Pages of the documentation, without the changelog: it names what existed once. */
const PAGES = globSync('{*.md,docs/**/*.md}', {
  cwd: root,
  exclude: ['CHANGELOG.md', 'docs/site/**'],
}).sort();

/** A code block, also one inside a list. */
export interface Block {
  readonly page: string;
  /** The first word of the info string; `indented` for a block without a fence. */
  readonly language: string;
  readonly text: string;
}

/** The code blocks of one page. */
export const blocksIn = (page: string): readonly Block[] =>
  codeOfPages().blocks.filter((block) => block.page === page);

interface Code {
  readonly blocks: readonly Block[];
  /** Code inside of sentences and tables, with the page that it is on. */
  readonly spans: readonly { readonly page: string; readonly text: string }[];
}

/** All code of the documentation. */
export function codeOfPages(): Code {
  const blocks: Block[] = [];
  const spans: { page: string; text: string }[] = [];
  for (const page of PAGES)
    void marked.walkTokens(marked.lexer(readFileSync(join(root, page), 'utf8')), (token) => {
      if (token.type === 'code') {
        const { lang = '', text, codeBlockStyle } = token as Tokens.Code;
        blocks.push({ page, language: codeBlockStyle === 'indented' ? codeBlockStyle : lang, text });
      } else if (token.type === 'codespan') spans.push({ page, text: (token as Tokens.Codespan).text });
    });
  return { blocks, spans };
}

/** Shell operators between commands. A command substitution begins a command, too. */
const OPERATOR = /^(?:\$\(|&&|\|\||[|;&()\n])/;

/**
 * The commands of a shell script as words, without variables before them, redirections, comments and quotes. Understands
 * what the documentation uses; functions and loops end up as commands of their own.
 */
export function commandsOf(script: string): string[][] {
  const commands: string[][] = [[]];
  let rest = withoutHereDocuments(script).replaceAll('\\\n', ' ');
  while (rest !== '') {
    const operator = OPERATOR.exec(rest)?.[0];
    const skipped = operator ?? /^(?:#.*|[ \t]+|\d?>>?&?\s*[^\s;|)]*|<\s*[^\s;|)]+)/.exec(rest)?.[0];
    if (operator !== undefined) commands.push([]);
    const raw =
      skipped ?? /^(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\{[^}]*\}|(?!\$\()[^\s;|&()<>'"])+/.exec(rest)?.[0];
    if (raw === undefined) throw new Error(`a shell script that the test does not understand: ${rest}`);
    if (skipped === undefined) commands.at(-1)?.push(raw.replace(/^(['"])(.*)\1$/s, '$2'));
    rest = rest.slice(raw.length);
  }
  return commands
    .map((words) => words.slice(words.findIndex((word) => !/^(?:[A-Z_]+=.*|export|do|then)$/s.test(word))))
    .filter(([first]) => first !== undefined && !/^(?:[A-Z_]+=|export$)/.test(first));
}

const withoutHereDocuments = (script: string): string =>
  script.replace(/<<'(\w+)'\n[\s\S]*?\n\1(?=\n|$)/g, '');
