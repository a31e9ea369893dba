import { type Command, Option } from 'commander';
import type { Bind } from './context.ts';
import { WHICH_GATEWAY, withGatewayOptions } from './proxy-program.ts';

/** The commands of users who have signed in at MCP servers; returns the group. */
export function usersCommands(program: Command, run: Bind): Command {
  const users = program
    .command('users')
    .description('users who have signed in at MCP servers of a running gateway');
  const output = (): Option =>
    new Option('-o, --output <format>', 'format of the output').choices(['text', 'json']).default('text');
  withGatewayOptions(
    users.command('list').description('list who has signed in where, and since when').addOption(output()),
  )
    .addHelpText('after', WHICH_GATEWAY)
    .action(run(() => import('./commands/users-list.ts')));
  withGatewayOptions(
    users
      .command('revoke')
      .argument('<user>', 'name or id of the user')
      .option('--server <server>', 'only at this server, as in the list (default: at all)')
      .description('sign a user out: remove the tokens, and revoke them at their servers')
      .addOption(output()),
  )
    .addHelpText('after', `${WHICH_GATEWAY}\nExample:\n  agctl users revoke ann\n`)
    .action(run(() => import('./commands/users-revoke.ts')));
  return users;
}
