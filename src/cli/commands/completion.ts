import type { Command } from 'commander';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { bashCompletion } from '../completion/bash.ts';
import { type CommandWords, commandWords } from '../completion/command-words.ts';
import { fishCompletion } from '../completion/fish.ts';
import { powershellCompletion } from '../completion/powershell.ts';
import { zshCompletion } from '../completion/zsh.ts';
import type { Run } from '../context.ts';

interface Options {
  readonly operands?: readonly string[];
}

const SHELLS: Readonly<Record<string, (commands: readonly CommandWords[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
  powershell: powershellCompletion,
  pwsh: powershellCompletion,
};

/** Prints the script for a shell, for the commands of `program`. */
export const completionOf =
  (program: Command): Run<Options> =>
  async ({ operands = [] }, { stdout }) => {
    const [name = ''] = operands;
    const script = Object.hasOwn(SHELLS, name) ? SHELLS[name] : undefined;
    if (script === undefined)
      throw new CommandError(
        'usage',
        name === '' ? 'which shell?' : `unknown shell: ${name}`,
        'agctl completion bash, zsh, fish or powershell',
      );
    stdout.write(script(commandWords(program)));
    return EXIT_CODES.ok.code;
  };
