import { type Command, Option } from 'commander';
import { FILE_OPTION } from './config-program.ts';
import type { Bind } from './context.ts';

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** The commands that record requests, and use the recordings. */
export function cassetteCommands(program: Command, run: Bind): void {
  program
    .command('record')
    .description('run the gateway, and record what its clients send and get')
    .option('-f, --file <path>', FILE_OPTION)
    .requiredOption('-o, --out <path>', 'file for the recording')
    .option('--force', 'replace the file if it exists')
    .addHelpText(
      'after',
      '\nThe file has a line of JSON for each request and its response, with the times of the events of streams. Secrets of the configuration, credentials of clients and session ids are not in it; read it before you share it, because no rule knows every secret. WebSockets are not recorded. With config.workers, one process handles all requests.\n\nExamples:\n  agctl record -f gateway.yaml -o cassette.jsonl\n',
    )
    .action(run(() => import('./commands/record.ts')));
  program
    .command('replay')
    .argument('<cassette>', 'file of agctl record, or - for standard input')
    .description('answer requests with what was recorded, without configuration, servers and models')
    .option(
      '--port <port>',
      'port of the first gateway of the recording; others have the next ones; 0: free ports (default: as recorded)',
    )
    .option('--host <ip>', 'address to listen on', '127.0.0.1')
    .option('--fast', 'leave out the pauses of streams')
    .option(
      '--ignore <path>',
      'member of a body that may differ from the recording, such as metadata.run or messages[*].id; may be repeated',
      collect,
    )
    .addHelpText(
      'after',
      '\nA request is answered if its method, path, query and body are as recorded: the order of members of JSON, ids of JSON-RPC calls, _meta, and what names the user or conversation of a call of a model do not count, and neither do headers and credentials. Equal requests get the recorded answers in their order, and then the last one again. A request that was not recorded gets status 400 or 404, with the nearest recorded request and what differs; the command prints that, too.\n\nExamples:\n  agctl replay cassette.jsonl\n  agctl replay cassette.jsonl --port 0 --fast --ignore metadata.run\n',
    )
    .action(run(() => import('./commands/replay.ts')));
  verifyCommand(program, run);
}

function verifyCommand(program: Command, run: Bind): void {
  program
    .command('verify')
    .argument('<cassette>', 'file of agctl record, or - for standard input')
    .description('send the recorded requests again, and report answers, decisions and costs that differ')
    .option('-f, --file <path>', 'configuration of a gateway that is started for it, on free ports')
    .option(
      '--against <url>',
      'base URL of a running gateway; for several gateways NAME=URL, repeated',
      collect,
    )
    .option(
      '--header <line>',
      "header of all requests, such as 'authorization: Bearer $KEY', with variables of the environment and of gateway.env beside the file of -f; may be repeated. A request that was recorded with 401 gets no credential",
      collect,
    )
    .option(
      '--ignore <path>',
      'member of an answer that may differ, such as result.structuredContent.time or **.date; may be repeated',
      collect,
    )
    .option('--strict', 'compare texts of models too, and fail also for warnings')
    .addOption(
      new Option('-o, --output <format>', 'format of the report')
        .choices(['text', 'concise', 'json', 'github', 'sarif'])
        .default('text'),
    )
    .addHelpText(
      'after',
      "\nRequests follow each other as they did, in sessions of their own, and requests of servers get the recorded answers. They have effects: servers are called and models are paid. Compared are the status, lists of tools with their schemas, results of MCP servers and other services, and with -f also who has decided and what it costs. Of models, it compares the form of answers, which is a warning, and not their words.\n\nExit code 0: as recorded. 1: something differs. 2: a file that cannot be read. 3: nothing answers at the URL.\n\nExamples:\n  agctl verify cassette.jsonl -f gateway.yaml\n  agctl verify cassette.jsonl -f gateway.yaml --header 'authorization: Bearer $AGENT_KEY'\n  agctl verify cassette.jsonl --against http://127.0.0.1:3000 --header 'authorization: Bearer $AGENT_KEY' -o github\n",
    )
    .action(run(() => import('./commands/verify.ts')));
}
