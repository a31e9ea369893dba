import { Argument, type Command } from 'commander';
import { mcpClients } from '../core/clients/mcp-clients.ts';
import { FILE_OPTION } from './config-program.ts';
import type { Bind } from './context.ts';
import { withAdminOptions } from './proxy-program.ts';

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** The commands of the first minutes: a configuration, and clients that use it. */
export function setupCommands(program: Command, run: Bind): void {
  program
    .command('init')
    .argument('[folder]', 'folder for the configuration (default: the working folder)')
    .description('create a configuration, from the MCP servers of your clients if you like')
    .option('-y, --yes', 'ask nothing: import what is found, and take the defaults')
    .option('--with <features>', 'what the gateway offers, separated by commas: mcp, llm, memory')
    .option(
      '--from <source>',
      'what to import: a client such as cursor, or a file; may be repeated (default: all clients)',
      collect,
    )
    .option('--port <port>', 'port of the gateway (default: the first free one from 3000)')
    .option('--no-secrets', 'do not copy secrets: write their names only')
    .addHelpText(
      'after',
      '\nReads the settings of Claude Code, Claude Desktop, Cursor, VS Code, Codex, Gemini CLI, Windsurf, Zed, Cline and LM Studio; with --from also any file with `mcpServers`, config.yaml of LiteLLM, and configurations of agentgateway in former forms.\n\nWrites gateway.yaml. Secrets of imported files become references such as $NAME; their values are written to gateway.env, which only its owner can read. Nothing is overwritten.\n\nExit code 0: created. 1: a file exists already, or could not be written.\n\nExamples:\n  agctl init\n  agctl init --yes --with mcp,llm\n  agctl init --yes --from cursor --from ./litellm.yaml\n',
    )
    .action(run(() => import('./commands/init.ts')));
  connectCommand(program, run);
}

function connectCommand(program: Command, run: Bind): void {
  const command = program
    .command('connect')
    .addArgument(
      choice(
        '[client]',
        mcpClients.map(({ key }) => key),
      ),
    )
    .description("print the setting with which a client uses the gateway, or write it to the client's file")
    .option('-w, --write', 'change the settings file, after a copy of it')
    .option('--llm', "use the gateway's models, instead of its tools: claude, codex, gemini")
    .option('--model <name>', 'with --llm: the model to ask (default: the first of the configuration)')
    .option('--remove', 'show what would be removed; with --write, remove it')
    .option('--name <name>', 'name of the gateway in the client', 'agctl')
    .option(
      '--key-variable <name>',
      "environment variable with the client's key (default: that of the configuration)",
    )
    .option('--settings <path>', "another settings file than the client's usual one")
    .optionsGroup('Which endpoint:')
    .option('-f, --file <path>', FILE_OPTION)
    .option('--url <url>', 'URL of the MCP endpoint; with --llm, base URL of the models without /v1');
  withAdminOptions(command)
    .addHelpText(
      'after',
      '\nThe endpoint is that of the configuration; with --local or --admin, that of a running gateway. If it asks for a key, the setting refers to an environment variable where the client can read one, and never contains the key. Variables of the configuration need not be set.\n\nExit code 0: printed or written. 1: the settings file cannot be changed.\n\nExamples:\n  agctl connect cursor\n  agctl connect claude --write\n  agctl connect claude --llm --write\n  agctl connect codex --remove --write\n',
    )
    .action(run(() => import('./commands/connect.ts')));
}

/** The command that prints the script of a shell; `program` is the whole tree. */
export function completionCommand(program: Command, run: Bind): void {
  program
    .command('completion')
    .addArgument(choice('[shell]', ['bash', 'zsh', 'fish', 'powershell']))
    .description('print the completion script of a shell')
    .addHelpText(
      'after',
      '\nbash: source <(agctl completion bash) in ~/.bashrc. zsh: source <(agctl completion zsh) in ~/.zshrc, after compinit. fish: agctl completion fish > ~/.config/fish/completions/agctl.fish. PowerShell: agctl completion powershell | Out-String | Invoke-Expression in $PROFILE.\n',
    )
    .action(run(async () => ({ run: (await import('./commands/completion.ts')).completionOf(program) })));
}

/** An argument with its values in the help and in completions; the command reports others. */
function choice(name: string, values: readonly string[]): Argument {
  const argument = new Argument(name);
  argument.argChoices = [...values];
  return argument;
}
