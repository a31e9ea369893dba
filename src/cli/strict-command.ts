import { Command, type Option } from 'commander';
import { nearest } from '../core/suggest.ts';

/**
 * A Commander command that reports a wrong option or operand before a missing one; Commander reports the missing one
 * first.
 */
export class StrictCommand extends Command {
  override createCommand(name?: string): Command {
    return new StrictCommand(name);
  }

  /** If an option that takes one value is repeated, Commander silently uses the last value; this makes it an error. */
  override addOption(option: Option): this {
    super.addOption(option);
    if (!option.required && !option.optional) return this;
    let isGiven = false;
    return this.on(`option:${option.name()}`, () => {
      // An option that may be repeated collects its values in a list.
      if (isGiven && !Array.isArray(this.getOptionValue(option.attributeName())))
        this.error(`error: option '${option.flags}' is given twice, but takes one value`, {
          code: 'commander.conflictingOption',
        });
      isGiven = true;
    });
  }

  /** Called by Commander. In `keys create --nmae x`, `--name` is missing because of `--nmae`. */
  missingMandatoryOptionValue(option: Option): void {
    const unknown = this.args.find((word) => word.length > 1 && word.startsWith('-'));
    if (unknown !== undefined && this.args.length > this.registeredArguments.length)
      this.error(unknownOption(this, unknown), { code: 'commander.unknownOption' });
    this.error(`error: required option '${option.flags}' not specified`, {
      code: 'commander.missingMandatoryOptionValue',
    });
  }

  /** Called by Commander for operands that a command does not take: in `serve x`, the `-f` before `x` is missing. */
  _excessArguments(operands: readonly string[]): void {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of Commander lack it
    if ((this as unknown as { _allowExcessArguments: boolean })._allowExcessArguments) return;
    const [extra] = operands.slice(this.registeredArguments.length);
    const file = this.options.find(({ long }) => long === '--file');
    const hint =
      this.registeredArguments.length > 0 || file === undefined || extra === undefined
        ? ''
        : `\n(Did you mean ${file.short} ${extra}?)`;
    this.error(`error: too many arguments for '${this.name()}': ${operands.join(' ')}${hint}`, {
      code: 'commander.excessArguments',
    });
  }

  /**
   * Called by Commander for `help <name> …`; its own version reads one name and prints the whole help for an unknown one.
   */
  _dispatchHelpCommand(): void {
    this.#helpFor(this.args.slice(1), false);
  }

  /**
   * Called by Commander before it does anything else; its own version prints the help of a group, whatever is named beside
   * `--help`: `proxy nonsense --help`, `--help check`.
   */
  _outputHelpIfRequested(words: readonly string[]): void {
    if (!words.includes('--help') && !words.includes('-h')) return;
    this.#helpFor(this.#operands(), true);
  }

  /** Prints the help of the command with these names, from this one on, which operands of it may follow. */
  #helpFor(names: readonly string[], hasOperands: boolean): never {
    let command: Command = this;
    for (const name of names) {
      if (hasOperands && command.commands.length === 0) break;
      const named = command.commands.find((one) => one.name() === name || one.aliases().includes(name));
      if (named === undefined && name !== 'help') this.error(unknownCommand(command, name));
      command = named ?? command;
    }
    return command.help();
  }

  /** The words that are neither options nor values of options, of this command and those around and below it. */
  #operands(): string[] {
    const options = [...ancestors(this), ...withDescendants(this)].flatMap((each) => each.options);
    return this.args.filter((word, index) => {
      const before = this.args[index - 1];
      return !word.startsWith('-') && !options.some((option) => takesNext(option, before));
    });
  }
}

const withDescendants = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(withDescendants),
];

const takesNext = ({ required, optional, short, long }: Option, word: string | undefined): boolean =>
  word !== undefined && (required || optional) && (word === short || word === long);

/** Makes a group without a subcommand print its help, and an unknown subcommand suggest the nearest one. */
export function helpOrUnknown(group: Command): void {
  // The options of a nonexistent subcommand do not belong to the group; the subcommand is what is wrong.
  group
    .allowExcessArguments(true)
    .allowUnknownOption(true)
    .action(() => {
      const [unknown] = group.args;
      if (unknown === undefined) group.configureOutput().writeOut?.(group.helpInformation());
      else if (unknown.startsWith('-'))
        group.error(unknownOption(group, unknown), { code: 'commander.unknownOption' });
      else group.error(unknownCommand(group, unknown));
    });
}

function unknownCommand(group: Command, word: string): string {
  const names = group.commands.flatMap((command) => [command.name(), ...command.aliases()]);
  return `error: unknown command '${word}'${suggestion(word, names)}`;
}

function unknownOption(command: Command, word: string): string {
  const flag = word.replace(/=.*$/s, '');
  const flags = [command, ...ancestors(command)].flatMap((one) =>
    one
      .createHelp()
      .visibleOptions(one)
      .flatMap(({ long }) => (long == null ? [] : [long])),
  );
  return `error: unknown option '${flag}'${flag.startsWith('--') ? suggestion(flag, flags) : ''}`;
}

function suggestion(word: string, names: readonly string[]): string {
  // `valid` differs from `validate` by more than a typing error, but is a prefix of it.
  const near = nearest(word, names) ?? names.find((name) => word.length > 2 && name.startsWith(word));
  return near === undefined ? '' : `\n(Did you mean ${near}?)`;
}

function ancestors({ parent }: Command): readonly Command[] {
  return parent === null ? [] : [parent, ...ancestors(parent)];
}
