import { type Command, Option } from 'commander';
import { exitCodeTable } from '../core/exit-codes.ts';
import { VERSION } from '../core/version.ts';
import type { Context } from './context.ts';
import { proxyCommands } from './proxy-program.ts';
import { helpOrUnknown, Words } from './words.ts';

/** What a command's file exports: options in, exit code out. Loaded on use, so that `--version` stays fast. */
export type Run<Options> = (options: Options, context: Context) => Promise<number>;

/**
 * The whole command tree: names, options and help. Each leaf's work is in `commands/<noun>-<verb>.ts`.
 * `setExit` receives the exit code of the command that ran.
 */
export function createProgram(context: Context, setExit: (code: number) => void): Command {
  const program = new Words('agctl')
    .description('Run, check and inspect a gateway for MCP servers and LLM providers.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help for a command')
    .addOption(
      new Option('--color <when>', 'colour the output').choices(['auto', 'always', 'never']).default('auto'),
    )
    .option('--no-color', 'same as --color never')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
    })
    .showHelpAfterError('(agctl --help lists all commands)');
  const run =
    <Options>(load: () => Promise<{ run: Run<Options> }>) =>
    async (...args: unknown[]): Promise<void> => {
      const command = args.at(-1) as Command;
      const { run: runCommand } = await load();
      const operands = command.args.length > 0 ? { operands: command.args } : {};
      setExit(await runCommand({ ...(command.optsWithGlobals() as Options), ...operands }, context));
    };

  const serve = (parent: Command, hidden: boolean): Command =>
    parent
      .command('serve', { hidden })
      .description('run the gateway')
      .requiredOption('-f, --file <path>', 'configuration file, or - for standard input')
      .option('--ui-write', 'let the admin pages write the configuration file')
      .option('--no-watch', 'do not reload the configuration file when it changes, only on SIGHUP')
      .addHelpText('after', '\nExamples:\n  agctl serve -f gateway.yaml\n')
      .action(run(() => import('./commands/gateway-serve.ts')));

  program.commandsGroup('Start:');
  serve(program, false);
  const gateway = program.command('gateway').description('the gateway itself');
  serve(gateway, false);

  const memory = memoryCommands(program, run);

  program
    .command('check')
    .description('find out why something does not work')
    .requiredOption('-f, --file <path>', 'configuration file, or - for standard input')
    .addOption(
      new Option('-o, --output <format>', 'form of the report').choices(['text', 'json']).default('text'),
    )
    .option(
      '--only <groups>',
      'checks to run: environment, config, ports, targets, llm, idp, joined by commas',
    )
    .option('--offline', 'ask nothing over the network')
    .option('--start', 'start every stdio target and list its tools')
    .option('--token-file <path>', 'look at this token too, or - for standard input; it is not sent anywhere')
    .option('--probe-registration', 'try to register a client at the identity provider')
    .option('--login-user <name>', 'try to get a token for this user')
    .option('--login-client <id>', 'client to get it with')
    .option('--login-password-env <variable>', 'environment variable that holds the password')
    .addHelpText(
      'after',
      '\nExit code 0: nothing failed. 1: something did.\n\nExamples:\n  agctl check -f gateway.yaml\n  agctl check -f gateway.yaml --only llm\n  agctl check -f gateway.yaml --only targets --start\n  agctl check -f gateway.yaml --only idp --token-file token.jwt\n',
    )
    .action(run(() => import('./commands/check.ts')));

  program.commandsGroup('Configuration:');
  const config = program.command('config').description('check and describe configuration files');
  config
    .command('validate')
    .argument('[files...]', 'configuration files, or - for standard input')
    .description('check configuration files and report every problem at its place')
    .option('-f, --file <path>', 'configuration file, or - for standard input')
    .addOption(
      new Option('-o, --output <format>', 'form of the report')
        .choices(['text', 'concise', 'json', 'github', 'sarif'])
        .default('text'),
    )
    .option('--strict', 'fail for warnings too')
    .addHelpText(
      'after',
      '\nOne run reports the mistakes of all parts of a file: a missing environment variable or a part that is refused keeps nothing else from being checked, and what would only follow from it is left out.\n\nWith --strict, warnings are exit code 1 as well, and errors in -o github. Elsewhere they stay warnings: `valid` of -o json says that there are no errors, and `warningCount` how many warnings.\n\nExit code 0: no errors. 1: errors. 2: a file that cannot be read; the others are checked all the same.\n\nExamples:\n  agctl config validate -f gateway.yaml\n  agctl config validate -o github *.yaml\n',
    )
    .action(run(() => import('./commands/config-validate.ts')));
  config
    .command('schema')
    .description('print the JSON Schema of configuration files, for editors')
    .action(run(() => import('./commands/config-schema.ts')));

  const auth = program.command('auth').description('sign-in');
  auth
    .command('explain')
    .description('say what each route would do with a token, and why')
    .requiredOption('-f, --file <path>', 'configuration file')
    .requiredOption(
      '--token-file <path>',
      'file with the token, or - for standard input; it is not sent anywhere',
    )
    .addOption(
      new Option('-o, --output <format>', 'form of the answer').choices(['text', 'json']).default('text'),
    )
    .addHelpText(
      'after',
      '\nExit code 0: every route accepts it. 1: some do not.\n\nExample:\n  agctl auth explain -f gateway.yaml --token-file token.jwt\n',
    )
    .action(run(() => import('./commands/auth-explain.ts')));

  const costs = program.command('costs').alias('catalog').description('what LLM calls cost');
  costs
    .command('import')
    .description('make a price catalog for config.modelCatalog from a public list of models')
    .requiredOption(
      '-f, --file <path>',
      'list of models, as https://models.dev/api.json publishes it, or - for standard input',
    )
    .addOption(
      new Option('--source <format>', 'format of the list').choices(['models.dev']).default('models.dev'),
    )
    .option('--providers <ids>', 'providers to take, joined by commas (default: all that a gateway knows)')
    .option('--legacy', 'take deprecated models too')
    .option('--pretty', 'indent the catalog')
    .option('-o, --out <path>', 'write the catalog to this file instead of standard output')
    .addHelpText(
      'after',
      '\nExit code 0: imported. 1: nothing to import. 2: a list that cannot be read.\n\nExample:\n  curl -o models.json https://models.dev/api.json\n  agctl costs import -f models.json --providers openai,mistral -o prices.json\n',
    )
    .action(run(() => import('./commands/costs-import.ts')));

  const proxy = proxyCommands(program, config, run);

  program.commandsGroup('More:');
  program
    .command('version')
    .description('print the version')
    .addOption(
      new Option('-o, --output <format>', 'form of the answer').choices(['text', 'json']).default('text'),
    )
    .action(run(() => import('./commands/version.ts')));
  program
    .command('exit-codes', { hidden: true })
    .description('print the exit codes of all commands')
    .addHelpText('after', () => `\n${exitCodeTable()}\n`)
    .action(run(() => import('./commands/exit-codes.ts')));
  program.helpCommand('help [command]', 'print help for a command');
  program.addHelpText('after', `\nExit codes:\n${exitCodeTable()}\n\nTry:  agctl serve -f gateway.yaml\n`);
  for (const group of [program, gateway, ...memory, config, auth, costs, ...proxy])
    helpOrUnknown(group, context);
  return program;
}

type Bind = <Options>(load: () => Promise<{ run: Run<Options> }>) => (...args: unknown[]) => Promise<void>;

/** The commands of the memory service; returns the groups. */
function memoryCommands(program: Command, run: Bind): readonly Command[] {
  const url = '--memory-api-url <url>';
  const allowUnauthenticated = [
    '--allow-unauthenticated',
    'listen beyond this machine without MEMORY_ADAPTER_KEY: everybody who reaches the port may use the tools',
  ] as const;
  const urlHelp = 'the memory backend (MEMORY_API_URL, http://memory-api:3006)';
  const adapter = program.command('memory-adapter').description('the MCP server that gives agents a memory');
  adapter
    .command('serve')
    .description('serve the memory tools over MCP, in front of a memory backend')
    .option('-p, --port <port>', 'port to listen on (PORT, 8080)')
    .option(
      '--host <address>',
      'address to listen on; others than this machine need MEMORY_ADAPTER_KEY',
      '127.0.0.1',
    )
    .option(...allowUnauthenticated)
    .option(url, urlHelp)
    .addHelpText(
      'after',
      helpText(ADAPTER_ENV, 'memory-adapter serve --memory-api-url http://127.0.0.1:3006'),
    )
    .action(run(() => import('./commands/memory-adapter-serve.ts')));
  const stdio = adapter
    .command('stdio')
    .description('serve the memory tools on stdin and stdout, for MCP clients that start their servers')
    .option('--embedded', 'with a backend of its own in this process')
    .option(url, `without --embedded: ${urlHelp}`);
  storeOptions(stdio)
    .addHelpText(
      'after',
      helpText(`MEMORY_AGENT_ID, ${BACKEND_ENV}`, 'memory-adapter stdio --embedded --docs ./docs'),
    )
    .action(run(() => import('./commands/memory-adapter-stdio.ts')));

  const backend = program
    .command('memory-backend')
    .description('the store of the memory, with its REST interface');
  const backendServe = backend
    .command('serve')
    .description('serve the memory over REST at /api/memory, and its dashboard at /ui')
    .option('-p, --port <port>', 'port to listen on (PORT, 3006)')
    .option(
      '--host <address>',
      'address to listen on; others than this machine need MEMORY_API_KEY',
      '127.0.0.1',
    );
  storeOptions(backendServe)
    .addHelpText('after', helpText(BACKEND_ENV, 'memory-backend serve --data ./memory --docs ./docs'))
    .action(run(() => import('./commands/memory-backend-serve.ts')));

  const memory = program.command('memory').description('memory adapter and backend together');
  const memoryServe = memory
    .command('serve')
    .description('run the memory adapter and its backend in one process')
    .option('-p, --port <port>', 'port of the adapter (PORT, 8080)')
    .option('--backend-port <port>', 'port of the backend (MEMORY_BACKEND_PORT, 3006)')
    .option(
      '--host <address>',
      'address of both; others than this machine need MEMORY_API_KEY and MEMORY_ADAPTER_KEY',
      '127.0.0.1',
    )
    .option(...allowUnauthenticated);
  storeOptions(memoryServe)
    .addHelpText('after', helpText(`MEMORY_ADAPTER_KEY, ${BACKEND_ENV}`, 'memory serve --docs ./docs'))
    .action(run(() => import('./commands/memory-serve.ts')));
  return [adapter, backend, memory];
}

const ADAPTER_ENV =
  'MEMORY_API_URL, PORT, MEMORY_ADAPTER_KEY (bearer token that callers of /mcp must send), MEMORY_API_KEY (bearer ' +
  'token of the backend), MEMORY_ALLOWED_HOSTS';
const BACKEND_ENV =
  'MEMORY_DATA_DIR, MEMORY_DOCS_DIR, MEMORY_DATABASE_URL (PostgreSQL instead of a folder), MEMORY_API_KEY, ' +
  'MEMORY_ALLOWED_HOSTS, MEMORY_INDEX_CHAT (true: make chat turns findable), EMBEDDINGS_URL, EMBEDDING_MODEL, ' +
  'EMBEDDING_API_KEY, EMBEDDING_SCORE_PIVOT, EMBEDDING_TRUNCATE';

function helpText(environment: string, example: string): string {
  return `\nEnvironment: ${environment}.\n\nExample:\n  agctl ${example}\n`;
}

function storeOptions(command: Command): Command {
  return command
    .option('--data <dir>', 'folder of the store (MEMORY_DATA_DIR, ~/.local/share/agctl/memory)')
    .option('--docs <dir>', 'folder of Markdown to read at every start (MEMORY_DOCS_DIR, /app/docs)');
}
