import type { Command } from 'commander';
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
    .argument('<cassette>', 'file of agctl record')
    .description('answer requests with what was recorded, without configuration, servers and models')
    .option(
      '--port <port>',
      'port of the first gateway of the recording; others have the next ones; 0: free ports (default: as recorded)',
    )
    .option('--host <ip>', 'address to listen on', '127.0.0.1')
    .option('--fast', 'leave out the pauses of streams')
    .option(
      '--ignore <path>',
      'member of a body that may differ from the recording, such as metadata.user_id or messages[*].id; may be repeated',
      collect,
    )
    .addHelpText(
      'after',
      '\nA request is answered if its method, path, query and body are as recorded: the order of members of JSON, ids of JSON-RPC calls and _meta do not count, and neither do headers and credentials. Equal requests get the recorded answers in their order, and then the last one again. A request that was not recorded gets status 400 or 404, with the nearest recorded request and what differs; the command prints that, too.\n\nExamples:\n  agctl replay cassette.jsonl\n  agctl replay cassette.jsonl --port 0 --fast --ignore metadata.user_id\n',
    )
    .action(run(() => import('./commands/replay.ts')));
}
