import type { Command, Help } from 'commander';
import { bold, entry, heading, literal, page, paragraph, prose, seeAlso, title, verbatim } from './roff.ts';

/** A command and the words that invoke it, as in `agctl config validate`. */
export interface CommandNode {
  readonly words: readonly string[];
  readonly command: Command;
}

/** `root` and every command below it, parents first, without the built-in `help` command. */
export function commandNodes(root: Command, before: readonly string[] = []): CommandNode[] {
  const words = [...before, root.name()];
  return [{ words, command: root }, ...childCommands(root).flatMap((child) => commandNodes(child, words))];
}

function childCommands(command: Command): Command[] {
  return helpOf(command)
    .visibleCommands(command)
    .filter((child) => command.commands.includes(child));
}

function helpOf(command: Command): Help {
  const help = command.createHelp();
  help.showGlobalOptions = true;
  return help;
}

/** Name of a command's page, as in `agctl-config-validate`. */
export function pageName(words: readonly string[]): string {
  return words.join('-');
}

/**
 * The page of one command, from the output of its `--help`. `helpText` is the text of `addHelpText('after')`; a block
 * that starts with `Title:` becomes a section.
 */
export function commandPage({ words, command }: CommandNode, helpText: string): string {
  const help = helpOf(command);
  const description = help.commandDescription(command);
  const { paragraphs, sections } = readHelpText(helpText);
  return page(
    title(pageName(words), 1, description.replace(/\.$/, '')),
    heading('Synopsis'),
    [synopsis(help.commandUsage(command))],
    heading('Description'),
    [prose(sentence(description))],
    paragraphs.flatMap(paragraph),
    list(
      'Commands',
      childCommands(command).map((child) => [help.subcommandTerm(child), help.subcommandDescription(child)]),
    ),
    list(
      'Arguments',
      help
        .visibleArguments(command)
        .map((argument) => [help.argumentTerm(argument), help.argumentDescription(argument)]),
    ),
    options('Options', help, help.visibleOptions(command)),
    options('Global options', help, help.visibleGlobalOptions(command)),
    sections.flat(),
    seeAlso(relatedPages(words, command)),
  );
}

function synopsis(usage: string): string {
  const [, call = '', rest = ''] = /^([^[<]*)(.*)$/.exec(usage) ?? [];
  return `${bold(call.trim())} ${literal(rest)}`.trim();
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`;
}

function options(name: string, help: Help, all: ReturnType<Help['visibleOptions']>): string[] {
  return list(
    name,
    all.map((option) => [help.optionTerm(option), help.optionDescription(option)]),
  );
}

function list(name: string, rows: readonly (readonly [term: string, text: string])[]): string[] {
  if (rows.length === 0) return [];
  return [...heading(name), ...rows.flatMap(([term, text]) => entry(term, sentence(text)))];
}

interface HelpText {
  readonly paragraphs: string[];
  readonly sections: string[][];
}

function readHelpText(text: string): HelpText {
  const paragraphs: string[] = [];
  const sections: string[][] = [];
  for (const block of text.split(/\n\s*\n/)) {
    const lines = block.split('\n').filter((line) => line.trim() !== '');
    const [first = '', ...rest] = lines;
    const [, name] = /^(\S[^:]*):$/.exec(first) ?? [];
    if (name !== undefined && rest.length > 0) sections.push([...heading(name), ...sectionBody(rest)]);
    else if (lines.length > 0) paragraphs.push(lines.join(' '));
  }
  return { paragraphs, sections };
}

/** Rows of `term  explanation` become a wrapped list; any other text is printed unchanged. */
function sectionBody(lines: readonly string[]): string[] {
  const rows = lines.map((line) => /^ +(\S+(?: \S+)*) {2,}(\S.*)$/.exec(line));
  if (!rows.every((row) => row !== null)) return verbatim(lines.map((line) => line.trim()));
  return rows.flatMap(([, term = '', text = '']) => entry(term, text));
}

function relatedPages(
  words: readonly string[],
  command: Command,
): { readonly name: string; readonly section: number }[] {
  const parent = words.length > 1 ? [pageName(words.slice(0, -1))] : [];
  const children = childCommands(command).map((child) => pageName([...words, child.name()]));
  return [
    ...[...parent, ...children].map((name) => ({ name, section: 1 })),
    { name: 'agctl-config', section: 5 },
    { name: 'agctl-errors', section: 7 },
  ];
}
