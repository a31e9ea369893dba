import { type Command, Option } from 'commander';
import type { Bind } from './context.ts';

/**
 * The commands that inspect a running gateway; returns the groups. Upstream's former names (`agctl trace`, `agctl
 * config all`, …) also work but are hidden.
 */
export function proxyCommands(program: Command, run: Bind): Command[] {
  program.commandsGroup('A running gateway:');
  for (const command of [logs, top]) command(program, false, run);
  const proxy = program.command('proxy').description('inspect a running gateway, and change its log levels');
  const config = proxy
    .command('config')
    .aliases(['c', 'cfg'])
    .description('the configuration that a gateway has loaded');
  const profile = proxy.command('profile').description('record CPU and heap profiles');
  const oldProfile = program.command('profile', { hidden: true }).description('agctl proxy profile');
  configCommands(config, false, run);
  for (const parent of [profile, oldProfile]) profileCommands(parent, run);
  trace(proxy, false, run);
  trace(program, true, run);
  for (const command of [logs, top]) command(proxy, true, run);
  logCommand(proxy, run);
  stateCommands(proxy, run);
  return [proxy, config, profile, oldProfile];
}

/** Adds upstream's former names of `agctl proxy config …` to `agctl config`. */
export function formerConfigCommands(config: Command, run: Bind): void {
  configCommands(config, true, run);
}

/** The note on them, for the help of commands. */
export const WHICH_GATEWAY =
  '\nWhich gateway: --admin, the environment variable AGCTL_ADMIN, that of gateway.yaml in this folder, or else the one on this machine.\n';

/** Adds the options that select an admin server. `port`: upstream's option for another port of this machine. */
export function withAdminOptions(command: Command, port = '--proxy-admin-port <port>'): Command {
  return command
    .optionsGroup('Which gateway:')
    .option('--local', 'the gateway on this machine, 127.0.0.1:15000')
    .option('--admin <address>', 'address of its admin server: host:port, unix:/path or http://host:port')
    .addOption(new Option(port, 'another admin port of this machine').hideHelp());
}

/** Adds these options, and `-f` for commands in which it is nothing else. */
export const withGatewayOptions = (command: Command): Command =>
  withAdminOptions(command).option(
    '-f, --file <path>',
    'the gateway with this configuration: its config.adminAddr (default: gateway.yaml in this folder)',
  );

/** Adds `agctl usage`. */
export function usageCommand(program: Command, run: Bind): void {
  withGatewayOptions(
    program
      .command('usage')
      .description('requests, tokens and cost by key, model, user or day')
      .option(
        '--by <groups>',
        'key, user, group, provider, model, target, tool, protocol, day or hour; several separated by commas',
        'model',
      )
      .option('--since <time>', 'how far back, such as 12h or 30d', '7d')
      .addOption(
        new Option('-o, --output <format>', 'format of the output')
          .choices(['table', 'json', 'csv'])
          .default('table'),
      ),
  )
    .addHelpText(
      'after',
      `${WHICH_GATEWAY}\nErrors are failures: status 500 and above, failed tools. Refusals such as 401 and 429 are requests, but no errors.\nThe gateway needs a database (config.database, read at start).\n\nExamples:\n  agctl usage\n  agctl usage --by user,model --since 30d -o csv\n`,
    )
    .action(run(() => import('./commands/usage.ts')));
}

function configCommands(parent: Command, hidden: boolean, run: Bind): void {
  const leaf = (name: string, description: string, example: string): Command =>
    withAdminOptions(
      parent
        .command(name, { hidden })
        .description(description)
        .option('-f, --file <path>', 'a saved dump, or - for standard input')
        .addOption(
          new Option('-o, --output <format>', 'format of the output').choices(['short', 'json', 'yaml']),
        ),
    ).addHelpText('after', `${WHICH_GATEWAY}\nExamples:\n  agctl proxy config ${name}\n  ${example}\n`);
  leaf(
    'all',
    'everything: an overview on a terminal, JSON otherwise',
    'agctl proxy config all --file dump.json -o yaml',
  ).action(run(() => import('./commands/proxy-config-all.ts')));
  leaf(
    'routes',
    'which requests are routed where, with which policies',
    'agctl proxy config routes --admin 10.0.0.7:15000 -o json',
  ).action(run(() => import('./commands/proxy-config-routes.ts')));
  leaf(
    'backends',
    'endpoints of models, with health, request counts and latency',
    'agctl proxy config backends --file dump.json --all',
  )
    .aliases(['b', 'be'])
    .option('--all', 'include endpoints without requests')
    .action(run(() => import('./commands/proxy-config-backends.ts')));
}

function profileCommands(parent: Command, run: Bind): void {
  const leaf = (name: string, description: string): Command =>
    withAdminOptions(
      parent
        .command(name)
        .description(description)
        .option('-o, --output <path>', 'file to write (default: agctl-<kind>-<time>.pb.gz)')
        .option('--seconds <n>', 'duration of the measurement, 1 to 300', '10'),
    )
      .addOption(new Option('-p, --port <port>', 'another admin port of this machine').hideHelp())
      .addHelpText(
        'after',
        `${WHICH_GATEWAY}\nOpen the file with: go tool pprof -http=: <file>\n\nExample:\n  agctl proxy profile ${name}\n`,
      );
  leaf('cpu', 'save a CPU profile in pprof format').action(
    run(() => import('./commands/proxy-profile-cpu.ts')),
  );
  leaf(
    'heap',
    'save a profile, in pprof format, of memory that is allocated from now on and still in use at the end',
  ).action(run(() => import('./commands/proxy-profile-heap.ts')));
}

function logCommand(proxy: Command, run: Bind): void {
  withAdminOptions(
    proxy
      .command('log')
      .description('show or change the log levels')
      .option('--level <level>', 'level for all modules: error, warn, info, debug, trace or off')
      .option(
        '--set <module=level>',
        'level for one module; may be repeated',
        (value: string, before: string[] = []) => [...before, value],
      )
      .option('--reset', 'restore the levels that the gateway started with')
      .option('--for <time>', 'revert the change after this time, such as 10m; the gateway keeps track of it')
      .addOption(
        new Option('-o, --output <format>', 'format of the output').choices(['text', 'json']).default('text'),
      ),
    '-p, --proxy-admin-port <port>',
  )
    .addHelpText(
      'after',
      `${WHICH_GATEWAY}\nExamples:\n  agctl proxy log\n  agctl proxy log --set proxy::httpproxy=trace --for 10m\n  agctl proxy log --reset\n`,
    )
    .action(run(() => import('./commands/proxy-log.ts')));
}

function logs(parent: Command, hidden: boolean, run: Bind): void {
  withAdminOptions(
    parent
      .command('logs', { hidden })
      .description('list the last requests, one line each, and follow further ones')
      .option('-f, --follow', 'print further requests as they finish, until Ctrl-C')
      .option('-n, --tail <n>', 'at most the last n requests (default: all that are kept; with --follow, 10)')
      .option('--since <time>', 'only requests since then: 10m ago, or 2026-01-31T12:00:00Z')
      .addOption(
        new Option('-o, --output <format>', 'text, or json: one object a line with all fields')
          .choices(['text', 'json'])
          .default('text'),
      )
      .optionsGroup('Which requests (several values: separated by commas; * stands for anything):')
      .option('--status <list>', 'statuses: 404, 5xx, or error for all that failed')
      .option('--route <list>', 'routes')
      .option('--target <list>', 'MCP servers, or LLM providers')
      .option('--model <list>', 'models')
      .option('--tool <list>', 'MCP tools')
      .option('--user <list>', 'users: the subject of the token'),
  )
    .addHelpText(
      'after',
      `${WHICH_GATEWAY}\nThe gateway keeps its last 1000 requests.\n\nExamples:\n  agctl logs --since 10m --status error\n  agctl logs -f --tool 'delete_*' --user ann\n  agctl logs -o json | jq .fields.duration\n`,
    )
    .action(run(() => import('./commands/proxy-logs.ts')));
}

function top(parent: Command, hidden: boolean, run: Bind): void {
  withAdminOptions(
    parent
      .command('top', { hidden })
      .description('watch requests, sessions, tokens, cost and latency on a screen'),
  )
    .addHelpText('after', `${WHICH_GATEWAY}\nPress ? on the screen for its keys.\n\nExample:\n  agctl top\n`)
    .action(run(() => import('./commands/proxy-top.ts')));
}

function stateCommands(proxy: Command, run: Bind): void {
  const leaf = (name: string, description: string): Command =>
    withAdminOptions(
      proxy
        .command(name)
        .description(description)
        .addOption(
          new Option('-o, --output <format>', 'format of the output')
            .choices(['text', 'json', 'yaml'])
            .default('text'),
        ),
    ).addHelpText('after', WHICH_GATEWAY);
  leaf('memory', 'memory usage and limits').action(run(() => import('./commands/proxy-memory.ts')));
  leaf('tasks', 'list open requests and other tasks').action(run(() => import('./commands/proxy-tasks.ts')));
  withAdminOptions(proxy.command('shutdown').description('stop the gateway once open requests have finished'))
    .addHelpText('after', WHICH_GATEWAY)
    .action(run(() => import('./commands/proxy-shutdown.ts')));
}

function trace(parent: Command, hidden: boolean, run: Bind): void {
  withAdminOptions(
    parent
      .command('trace', { hidden })
      .argument('[request...]', 'after --: the URL of a request to send, with -X, -H, -d as in curl')
      .description('trace the next request: its route, policies, expressions, backend and status')
      .optionsGroup('Which request:')
      .option(
        '--match <cel>',
        'only a request for which this expression is true, such as request.path == "/mcp"',
      )
      .addOption(new Option('--expression <cel>', 'same as --match'))
      .option('--count <n>', 'trace this many requests, one after another', '1')
      .option('--timeout <time>', 'stop waiting after this time (default: 60s; on a terminal, no limit)')
      .option(
        '--port <port>',
        'send the request after -- to this local port, with the host of its URL as Host',
      )
      .optionsGroup('Output:')
      .option('--raw', 'JSON Lines as the gateway sends them')
      .option('--plain', 'print lines of text even on a terminal; suits screen readers')
      .option(
        '--fail-on <list>',
        'exit code 1 on: warn, error, deny, 4xx, 5xx, cel-error, no-route; separated by commas',
      )
      .option('--save <path>', 'also write the JSON Lines to this file')
      .option('-f, --file <path>', 'show a saved trace instead, or - for standard input'),
  )
    .addHelpText('after', `${WHICH_GATEWAY}${TRACE_HELP}`)
    .action(run(() => import('./commands/proxy-trace.ts')));
}

/** The example is an MCP request that works without a session: any other must carry an Mcp-Session-Id. */
const TRACE_HELP = `
Exit code 1: --fail-on matched. 3: no gateway, or the trace was interrupted.

Examples:
  agctl proxy trace
  agctl proxy trace --match 'request.path == "/mcp"' --raw
  agctl proxy trace -- http://127.0.0.1:3000/mcp \\
    -H 'accept: application/json, text/event-stream' \\
    -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":
         {"protocolVersion":"2025-06-18","capabilities":{},
          "clientInfo":{"name":"agctl","version":"1"}}}'
  agctl proxy trace --file trace.jsonl
`;
