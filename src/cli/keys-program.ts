import { type Command, Option } from 'commander';
import type { Bind } from './context.ts';
import { WHICH_GATEWAY, withGatewayOptions } from './proxy-program.ts';

/** The commands of virtual keys; returns the group. */
export function keysCommands(program: Command, run: Bind): Command {
  const keys = program.command('keys').description('virtual keys of a running gateway, and their budgets');
  const output = (): Option =>
    new Option('-o, --output <format>', 'format of the output').choices(['text', 'json']).default('text');
  const collected = (value: string, before: string[] = []): string[] => [...before, value];
  withGatewayOptions(
    keys
      .command('create')
      .description('create a key, and print it: it is not kept, and cannot be shown again')
      .requiredOption('--name <name>', 'name of the key in logs and lists')
      .option('--models <patterns>', 'models that it may use, separated by commas (default: all)')
      .option('--budget <limit>', 'such as 10USD/day or 500000tokens/month; may be repeated', collected)
      .option('--metadata <name=value>', 'read by expressions as apiKey.<name>; may be repeated', collected)
      .option('--expires <time>', 'after this time, such as 30d or 12h (default: never)')
      .addOption(output()),
  )
    .addHelpText(
      'after',
      `${WHICH_GATEWAY}\nThe key alone goes to standard output. Routes accept it whose policy apiKey has virtualKeys.\n\nExamples:\n  agctl keys create --name ann --budget 10USD/day\n  agctl keys create --name ci --models 'gpt-*,claude-*' --metadata team=red --expires 30d\n`,
    )
    .action(run(() => import('./commands/keys-create.ts')));
  withGatewayOptions(
    keys.command('list').description('list keys with their budgets and use').addOption(output()),
  )
    .addHelpText('after', WHICH_GATEWAY)
    .action(run(() => import('./commands/keys-list.ts')));
  withGatewayOptions(
    keys
      .command('revoke')
      .argument('<key>', 'name or id of the key')
      .description('refuse new calls with a key at once; calls that have begun may finish')
      .addOption(output()),
  )
    .addHelpText('after', `${WHICH_GATEWAY}\nExample:\n  agctl keys revoke ann\n`)
    .action(run(() => import('./commands/keys-revoke.ts')));
  return keys;
}
