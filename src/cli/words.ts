import { Command, type Option } from 'commander';
import { nearest } from '../core/suggest.ts';
import type { Context } from './context.ts';

/** A command that says first what is wrong with the words that it was given: Commander asks for what is missing first. */
export class Words extends Command {
  override createCommand(name?: string): Command {
    return new Words(name);
  }

  /** Of an option that takes one value Commander uses the last and says nothing of the others: here it is an error. */
  override addOption(option: Option): this {
    super.addOption(option);
    if (!option.required && !option.optional) return this;
    let isGiven = false;
    return this.on(`option:${option.name()}`, () => {
      // One that may be repeated collects its values in a list.
      if (isGiven && !Array.isArray(this.getOptionValue(option.attributeName())))
        this.error(`error: option '${option.flags}' is given twice, and takes one value`, {
          code: 'commander.conflictingOption',
        });
      isGiven = true;
    });
  }

  /** Commander calls this. `serve --fiel x` lacks `--file`, and `--fiel` is why; `serve x` lacks the `-f` before it. */
  missingMandatoryOptionValue(option: Option): void {
    const unknown = this.args.find((word) => word.length > 1 && word.startsWith('-'));
    if (unknown !== undefined && this.args.length > this.registeredArguments.length)
      this.error(unknownOption(this, unknown), { code: 'commander.unknownOption' });
    const [operand] = this.args;
    const hint =
      option.long === '--file' && operand !== undefined ? `\n(Did you mean ${option.short} ${operand}?)` : '';
    this.error(`error: required option '${option.flags}' not specified${hint}`, {
      code: 'commander.missingMandatoryOptionValue',
    });
  }

  /** Commander calls this for `help <name>`, and prints the whole help for a name that it does not know. */
  _dispatchHelpCommand(name: string | undefined): void {
    if (name === undefined) this.help();
    const command = this.commands.find((one) => one.name() === name || one.aliases().includes(name));
    if (command !== undefined) command.help();
    else if (name === 'help') this.help();
    else this.error(unknownCommand(this, name));
  }
}

/** A group on its own prints its help; with a word that is none of its commands, the nearest one. */
export function helpOrUnknown(group: Command, { stdout }: Context): void {
  // Options behind a command that does not exist are not this group's: the command is what is wrong.
  group
    .allowExcessArguments(true)
    .allowUnknownOption(true)
    .action(() => {
      const [unknown] = group.args;
      if (unknown === undefined) stdout.write(group.helpInformation());
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
  // `valid` is more than a typing error away from `validate`, and yet its beginning.
  const near = nearest(word, names) ?? names.find((name) => word.length > 2 && name.startsWith(word));
  return near === undefined ? '' : `\n(Did you mean ${near}?)`;
}

function ancestors({ parent }: Command): readonly Command[] {
  return parent === null ? [] : [parent, ...ancestors(parent)];
}
