import type { Argument, Command, Option } from 'commander';

/** What can follow an option, or stand as an operand. */
export type Value = 'file' | 'folder' | 'text' | readonly string[];

export interface OptionWords {
  /** `-f` and `--file`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined for an option without a value. */
  readonly value: Value | undefined;
}

/** One command, with everything that can follow its name. */
export interface CommandWords {
  /** Its words after `agctl`, as in `config validate`; empty for `agctl` itself. */
  readonly path: string;
  /** Names of its subcommands, with their aliases. */
  readonly subcommands: readonly {
    readonly names: readonly string[];
    readonly path: string;
    readonly description: string;
  }[];
  readonly options: readonly OptionWords[];
  /** Undefined for a command without operands. */
  readonly operand: Value | undefined;
}

/** All visible commands of the tree, parents first. */
export function commandWords(root: Command): readonly CommandWords[] {
  return wordsOf(root, '', []);
}

function wordsOf(command: Command, path: string, inherited: readonly OptionWords[]): CommandWords[] {
  const help = command.createHelp();
  const own = help.visibleOptions(command).map(optionWords);
  const children = help.visibleCommands(command).filter((child) => command.commands.includes(child));
  const pathOf = (child: Command): string => `${path} ${child.name()}`.trim();
  const options = [...own, ...inherited.filter((each) => !own.some((known) => isSame(known, each)))];
  return [
    {
      path,
      subcommands: children.map((child) => ({
        names: [child.name(), ...child.aliases()],
        path: pathOf(child),
        description: help.subcommandDescription(child),
      })),
      options,
      operand: command.registeredArguments.map(operandOf).find((each) => each !== 'text'),
    },
    // The options of `agctl` itself can be given anywhere; those of groups are only `--help`.
    ...children.flatMap((child) =>
      wordsOf(child, pathOf(child), path === '' ? own.filter(isGlobal) : inherited),
    ),
  ];
}

const isSame = (a: OptionWords, b: OptionWords): boolean => a.flags.some((flag) => b.flags.includes(flag));
const isGlobal = ({ flags }: OptionWords): boolean => !flags.includes('--version');

function optionWords({
  short,
  long,
  description,
  required,
  optional,
  flags,
  argChoices,
}: Option): OptionWords {
  return {
    flags: [short, long].filter((flag) => flag !== undefined && flag !== null),
    description,
    value: required || optional ? (argChoices ?? placeholderValue(flags)) : undefined,
  };
}

const operandOf = (argument: Argument): Value => argument.argChoices ?? placeholderValue(argument.name());

/** What a placeholder such as `<path>` or `[files...]` stands for. */
function placeholderValue(placeholder: string): Value {
  if (/\b(?:dir|folder)\b/.test(placeholder)) return 'folder';
  return /\b(?:path|files?|target)\b/.test(placeholder) ? 'file' : 'text';
}
