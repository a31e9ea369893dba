import { Argument, Command, Option } from 'commander';
import { mcpClients } from '../core/clients/mcp-clients.ts';
import { CommandError, exitCodeTable } from '../core/exit-codes.ts';
import { VERSION } from '../core/version.ts';
import { auditCommand } from './audit-program.ts';
import { cassetteCommands } from './cassette-program.ts';
import { configCommands, FILE_OPTION } from './config-program.ts';
import type { Bind, Context } from './context.ts';
import { databaseCommands } from './database-program.ts';
import { withEnvFile } from './env-file.ts';
import { asCalled } from './invocation.ts';
import { keysCommands } from './keys-program.ts';
import { memoryCommands } from './memory-program.ts';
import { formerConfigCommands, proxyCommands, usageCommand, withAdminOptions } from './proxy-program.ts';
import { withSafeOutput } from './safe-output.ts';
import { helpOrUnknown, StrictCommand } from './strict-command.ts';
import { usersCommands } from './users-program.ts';

/**
 * Creates the whole command tree: names, options and help. The work of each leaf command is in
 * `commands/<noun>-<verb>.ts`. `setExit` receives the exit code of the command that ran. `first` is the first word of the
 * command line, if that is all that is needed: creating the whole tree takes 8 ms of CPU time.
 */
export function createProgram(context: Context, setExit: (code: number) => void, first?: string): Command {
  const program = rootCommand(context);
  const run: Bind =
    (load) =>
    async (...args) => {
      const command = args.at(-1);
      if (!(command instanceof Command)) return;
      const empty = command.registeredArguments.find(
        ({ variadic }, index) => !variadic && command.args[index] === '',
      );
      // Such as `"$KEY"` of a script that has not set it.
      if (empty !== undefined) throw new CommandError('usage', `the argument <${empty.name()}> is empty`);
      const unset = command.options.find((option) => {
        const name = option.attributeName();
        // An empty expression is that of any request, as upstream's `/debug/trace` reads it.
        if (option.flags.endsWith('<cel>')) return false;
        return command.getOptionValueSource(name) === 'cli' && command.getOptionValue(name) === '';
      });
      if (unset !== undefined)
        throw new CommandError('usage', `the option ${unset.long ?? unset.flags} is empty`);
      const { run: runCommand } = await load();
      const operands = command.args.length > 0 ? { operands: command.args } : {};
      const { envFrom, ...given } = command.optsWithGlobals<{ envFrom?: string; color: string }>();
      const options = { ...given, ...operands };
      setExit(
        await runCommand(
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the options that the command declares
          options as unknown as Parameters<typeof runCommand>[0],
          withEnvFile(withSafeOutput(context, given.color), envFrom),
        ),
      );
    };

  if (first === 'config') {
    const config = configCommands(program, run);
    formerConfigCommands(config, run);
    helpOrUnknown(config);
    return program;
  }
  program.commandsGroup('Start:');
  setupCommands(program, run);
  serveCommand(program, false, run);
  const gateway = program.command('gateway').description('commands of the gateway');
  serveCommand(gateway, false, run);
  gateway
    .command('worker', { hidden: true })
    .description('handle requests for a gateway with several workers, which starts this command itself')
    .action(run(() => import('./commands/gateway-worker.ts')));
  const memory = memoryCommands(program, run);
  checkCommand(program, run);
  program.commandsGroup('Recordings:');
  cassetteCommands(program, run);
  program.commandsGroup('Configuration:');
  const config = configCommands(program, run);
  const auth = authCommands(program, run);
  const costs = costsCommands(program, run);
  formerConfigCommands(config, run);
  const proxy = proxyCommands(program, run);
  const keys = keysCommands(program, run);
  const users = usersCommands(program, run);
  const database = databaseCommands(program, run);
  usageCommand(program, run);
  auditCommand(program, run);
  program.commandsGroup('More:');
  completionCommand(program, run);
  infoCommands(program, run);
  for (const group of [program, gateway, ...memory, config, auth, costs, ...proxy, keys, users, database])
    helpOrUnknown(group);
  return program;
}

function rootCommand(context: Context): Command {
  return new StrictCommand('agctl')
    .description('Run, check and inspect a gateway for MCP servers and LLM providers.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help for a command')
    .addOption(
      new Option('--color <when>', 'color the output').choices(['auto', 'always', 'never']).default('auto'),
    )
    .option('--no-color', 'same as --color never')
    .option(
      '--env-from <path>',
      'file with variables, as lines NAME=value, instead of gateway.env beside gateway.yaml; those of the environment take precedence',
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(asCalled(text, context)),
      writeErr: (text) => context.stderr.write(asCalled(text, context)),
    })
    .showHelpAfterError('(agctl --help lists all commands)');
}

function serveCommand(parent: Command, hidden: boolean, run: Bind): void {
  parent
    .command('serve', { hidden })
    .description('run the gateway')
    .option('-f, --file <path>', FILE_OPTION)
    .option('--ui-write', 'let the admin pages write the configuration file')
    .option('--no-watch', 'do not reload the configuration file when it changes, only on SIGHUP')
    .addHelpText(
      'after',
      '\nVariables of the configuration are read from the environment and from the file beside it, such as gateway.env beside gateway.yaml, or from --env-from instead. Those of the environment take precedence.\n\nExamples:\n  agctl serve\n  agctl serve -f gateway.yaml\n  agctl serve --env-from .env\n',
    )
    .action(run(() => import('./commands/gateway-serve.ts')));
}

function checkCommand(program: Command, run: Bind): void {
  program
    .command('check')
    .description('find out why something does not work')
    .option('-f, --file <path>', FILE_OPTION)
    .addOption(
      new Option('-o, --output <format>', 'format of the report')
        .choices(['text', 'json', 'github'])
        .default('text'),
    )
    .option(
      '--only <groups>',
      'checks to run, separated by commas: environment, config, ports, targets, tools, contract, llm, idp',
    )
    .option('--offline', 'use no network')
    .option(
      '--start',
      'start every stdio target, list the tools of all targets, and compare names in rules and settings with them',
    )
    .option(
      '--tools',
      'report how many tokens the list of tools of each target has, like --only tools --start; connects to all targets',
    )
    .option(
      '--contract <file>',
      'compare the tools of all targets with this file of toolPinning, and fail if their definitions differ; connects to all targets',
    )
    .option('--update', 'with --contract: accept the tools as they are now, and write the file')
    .option(
      '--token-file <path>',
      'also inspect this token, or - for standard input; it is not sent anywhere',
    )
    .option('--probe-registration', 'try to register a client at the identity provider')
    .option('--login-user <name>', 'try to get a token for this user')
    .option('--login-client <id>', 'client that requests the token')
    .option('--login-password-env <variable>', 'environment variable that holds the password')
    .addHelpText(
      'after',
      '\nExit code 0: no check failed. 1: a check failed.\n\nExamples:\n  agctl check -f gateway.yaml\n  agctl check -f gateway.yaml --only llm\n  agctl check -f gateway.yaml --only targets --start\n  agctl check -f gateway.yaml --tools\n  agctl check -f gateway.yaml --contract tools.lock.yaml\n  agctl check -f gateway.yaml --only idp --token-file token.jwt\n',
    )
    .action(run(() => import('./commands/check.ts')));
}

function authCommands(program: Command, run: Bind): Command {
  const auth = program.command('auth').description('inspect tokens');
  auth
    .command('explain')
    .description('explain what each route would do with a token, and why')
    .option('-f, --file <path>', FILE_OPTION)
    .requiredOption(
      '--token-file <path>',
      'file with the token, or - for standard input; it is not sent anywhere',
    )
    .addOption(
      new Option('-o, --output <format>', 'format of the output').choices(['text', 'json']).default('text'),
    )
    .addHelpText(
      'after',
      '\nExit code 0: every route that validates tokens accepts it. 1: some do not.\n\nExample:\n  agctl auth explain --token-file token.jwt\n',
    )
    .action(run(() => import('./commands/auth-explain.ts')));
  return auth;
}

function costsCommands(program: Command, run: Bind): Command {
  const costs = program.command('costs').alias('catalog').description('prices of LLM calls');
  costs
    .command('import')
    .description('create a price catalog for config.modelCatalog from a public list of models')
    .requiredOption(
      '-f, --file <path>',
      'list of models, as https://models.dev/api.json publishes it, or - for standard input',
    )
    .addOption(
      new Option('--source <format>', 'format of the list').choices(['models.dev']).default('models.dev'),
    )
    .option(
      '--providers <ids>',
      'providers to import, separated by commas (default: all that the gateway supports)',
    )
    .option('--legacy', 'import deprecated models too')
    .option('--pretty', 'indent the catalog')
    .option('-o, --out <path>', 'write the catalog to this file instead of standard output')
    .addHelpText(
      'after',
      '\nExit code 0: imported. 1: nothing to import. 2: a list that cannot be read.\n\nExample:\n  curl -o models.json https://models.dev/api.json\n  agctl costs import -f models.json --providers openai,mistral -o prices.json\n',
    )
    .action(run(() => import('./commands/costs-import.ts')));
  return costs;
}

function infoCommands(program: Command, run: Bind): void {
  program
    .command('version')
    .description('print the version')
    .addOption(
      new Option('-o, --output <format>', 'format of the output').choices(['text', 'json']).default('text'),
    )
    .action(run(() => import('./commands/version.ts')));
  program
    .command('exit-codes', { hidden: true })
    .description('print the exit codes of all commands')
    // `help exit-codes` prints the table; that there is a command for it is not what was asked.
    .configureHelp({ formatHelp: () => `${exitCodeTable()}\n` })
    .action(run(() => import('./commands/exit-codes.ts')));
  program.helpCommand('help [command...]', 'print help for a command');
  program.addHelpText('after', `\nExit codes:\n${exitCodeTable()}\n\nTry:  agctl serve -f gateway.yaml\n`);
}

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** The commands of the first minutes: a configuration, and clients that use it. */
function setupCommands(program: Command, run: Bind): void {
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
      '\nReads the settings of Claude Code, Claude Desktop, Cursor, VS Code, Codex, Gemini CLI, Windsurf, Zed, Cline and LM Studio; with --from also any file with `mcpServers`, server.json of the MCP registry, config.yaml of LiteLLM, config objects of Portkey, and configurations of agentgateway in former forms.\n\nWrites gateway.yaml. Secrets of imported files become references such as $NAME; their values are written to gateway.env, which only its owner can read. Nothing is overwritten.\n\nExit code 0: created. 1: a file exists already, or could not be written.\n\nExamples:\n  agctl init\n  agctl init --yes --with mcp,llm\n  agctl init --yes --from cursor --from ./litellm.yaml\n',
    )
    .action(run(() => import('./commands/init.ts')));
  addCommand(program, run);
  connectCommand(program, run);
}

function addCommand(program: Command, run: Bind): void {
  program
    .command('add')
    .argument('<name>', 'name of the target, which its tools get as prefix')
    .description(
      'add an MCP server to a configuration, from its entry in a registry or the settings of a client',
    )
    .requiredOption(
      '--from <source>',
      'server.json, another file that init imports, or a client such as cursor',
    )
    .option('-f, --file <path>', 'configuration file (default: gateway.yaml)')
    .option('--server <name>', 'which server, if the source has several')
    .option('--package <which>', 'package of server.json: its number, or npm, pypi, oci or nuget')
    .option('--remote [number]', 'remote of server.json, instead of a package')
    .option('-y, --yes', 'at a terminal: do not ask for the values that the server needs')
    .option('--no-start', 'with toolPinning: do not start the server to pin its tools')
    .option(
      '--allow-risks',
      'add a server of a registry although its file asks for more of this machine than usual, such as a folder for a container, or names a plain http address',
    )
    .addHelpText(
      'after',
      '\nserver.json is the format of the MCP registry; a file may also have what the registry answers. Without --package or --remote, the first package that can be started is used, or else a remote. Packages run with npx (npm), uvx (pypi), docker (oci) and dnx (nuget), in the version that the file names.\n\nThe rest of the configuration keeps its bytes. Values that the server needs become references such as $NAME, and lines of the file of variables beside the configuration, such as gateway.env, which keeps what it has; at a terminal, the command asks for them. Without a value, such a line is a comment, so that no server starts with a wrong one. With toolPinning, the server is started once and its tools are pinned, unless values are missing. Options of docker and others that are not known to be harmless, other registries than the usual ones and plain http addresses are printed first, and the server is only added with --allow-risks. If a step fails, the configuration stays as it was.\n\nExit code 0: added. 1: the configuration cannot be changed, or the server cannot be used or started.\n\nExamples:\n  agctl add weather --from server.json\n  agctl add weather --from server.json --package oci -f gateway.yaml\n  agctl add files --from cursor --server filesystem\n',
    )
    .action(run(() => import('./commands/add.ts')));
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
    .option('--name <name>', 'name of the gateway in the client (default: agctl, or the name of the bundle)')
    .option(
      '--key-variable <name>',
      "environment variable with the client's key (default: that of the configuration)",
    )
    .option('--settings <path>', "another settings file than the client's usual one")
    .optionsGroup('Which endpoint:')
    .option('-f, --file <path>', FILE_OPTION)
    .option('--bundle <name>', 'a bundle of the configuration (mcp.bundles)')
    .option('--url <url>', 'URL of the MCP endpoint; with --llm, base URL of the models without /v1');
  withAdminOptions(command)
    .addHelpText(
      'after',
      '\nThe endpoint is that of the configuration; with --local or --admin, that of a running gateway. If it asks for a key, the setting refers to an environment variable where the client can read one, and never contains the key. Variables of the configuration need not be set.\n\nExit code 0: printed or written. 1: the settings file cannot be changed.\n\nExamples:\n  agctl connect cursor\n  agctl connect claude --write\n  agctl connect claude --llm --write\n  agctl connect codex --remove --write\n',
    )
    .action(run(() => import('./commands/connect.ts')));
}

/** The command that prints the script of a shell; `program` is the whole tree. */
function completionCommand(program: Command, run: Bind): void {
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
