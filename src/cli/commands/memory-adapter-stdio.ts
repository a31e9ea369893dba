import { pipeline } from 'node:stream';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { createBackend, inNamespace } from '../../adapter/backend/backend.ts';
import { httpTransport, injectTransport, type Transport } from '../../adapter/backend/transport.ts';
import { memoryApiUrl } from '../../adapter/base-url.ts';
import { createMemoryServer } from '../../adapter/mcp-server.ts';
import type { SearchKind } from '../../adapter/tool.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { fileSink } from '../../core/file-sink.ts';
import { createLog, type Log } from '../../core/log.ts';
import type { Context, Run } from '../context.ts';
import { explain } from '../explain.ts';
import {
  type BackendOptions,
  dataFolder,
  MemoryInUseError,
  openBackend,
  sharedSettings,
} from '../memory/backend.ts';
import { apiKeyFrom, namespaceFrom, toolSetFrom } from '../memory/options.ts';
import { joinOwner } from '../memory/others-socket.ts';
import { refuseStdio } from '../memory/refuse-stdio.ts';
import { drain, untilStopped } from '../memory/service.ts';
import { type MemoryEnd, sharedMemory } from '../memory/shared-memory.ts';
import { stdioTransport } from '../memory/stdio-transport.ts';

interface Options extends BackendOptions {
  readonly embedded?: boolean;
  readonly memoryApiUrl?: string;
  readonly namespace?: string | undefined;
}

const STDERR = 2;
/** Where a process cannot join the one that owns a memory. */
const SHARE =
  'For several clients at a time, run `agctl memory serve` once and connect them to http://127.0.0.1:8080/mcp, or start them with ' +
  '`agctl memory-adapter stdio --memory-api-url http://127.0.0.1:3006`';

interface Ends {
  readonly transport: Transport;
  /** Bearer token of a backend elsewhere. */
  readonly key: string | undefined;
  /** Undefined for a backend elsewhere. */
  readonly searchKind: SearchKind | undefined;
  close(): Promise<void>;
}

/**
 * Serves MCP on stdin and stdout until stdin has ended and all its requests are answered. Writes nothing else to
 * stdout. If it cannot start, its client is told why.
 */
export const run: Run<Options> = async (options, context) => {
  // Wrong values concern whoever wrote the command.
  const toolSet = toolSetFrom(context);
  const namespace = namespaceFrom(options.namespace);
  try {
    return await serve({ ...options, toolSet, namespace }, context);
  } catch (error) {
    // Who types the command reads stderr, and would wait for an end.
    if (!(error instanceof CommandError) || process.stdin.isTTY) throw error;
    explain(error, context);
    await refuseStdio(error, context);
    return EXIT_CODES[error.exit].code;
  }
};

const serve: Run<Options & { readonly toolSet: ReturnType<typeof toolSetFrom> }> = async (
  options,
  context,
) => {
  const { toolSet, namespace } = options;
  const sink = fileSink(STDERR);
  const log = createLog(sink, 'info', 'text');
  const { transport, key, searchKind, close } = options.embedded
    ? await embedded(options, context, log)
    : remote(options, context);
  const backend = inNamespace(createBackend(transport, key), namespace);
  const agentId = context.env['MEMORY_AGENT_ID'] || 'unknown';
  const { transport: stdio, input } = stdioTransport(process.stdout, (problem) =>
    log.warn('memory::adapter', problem),
  );
  const connection = serveStdio(() => createMemoryServer({ backend, agentId, log, toolSet, searchKind }), {
    transport: stdio,
  });
  // An error such as a broken pipe also counts as the end of stdin.
  const ended = new Promise<void>((resolve) => pipeline(process.stdin, input, () => resolve()));
  const finish = async (): Promise<void> => {
    await connection.close();
    await close();
  };
  const code = await Promise.race([
    untilStopped(finish, log, context),
    ended.then(() => finish()).then(() => 0),
  ]);
  await sink.flush();
  return code;
};

function remote({ memoryApiUrl: url }: Options, context: Context): Ends {
  const transport = httpTransport(memoryApiUrl(url ?? context.env['MEMORY_API_URL']));
  return { transport, key: apiKeyFrom(context), searchKind: undefined, close: () => transport.close() };
}

async function embedded(options: BackendOptions, context: Context, log: Log): Promise<Ends> {
  const dataDir = dataFolder(options, context);
  const settings = sharedSettings(options, context);
  const own = async (): Promise<MemoryEnd> => {
    const { app, memories, key, searchKind } = await openBackend(options, context, log, '127.0.0.1');
    void memories.start();
    return {
      transport: injectTransport(app, '/api/memory', key),
      searchKind,
      async close() {
        await drain(app);
        await memories.close();
      },
    };
  };
  const join = async (): Promise<MemoryEnd | undefined> => {
    const joined = await joinOwner(dataDir, settings);
    if (joined !== undefined) log.info('memory', `process ${joined.pid} has this memory, and answers for it`);
    return joined && { ...joined, close: () => joined.transport.close() };
  };
  // PostgreSQL is for several backends.
  const { transport, searchKind, close } = await (context.env['MEMORY_DATABASE_URL']
    ? own()
    : sharedMemory({ join, own }, log)
  ).catch((error: unknown) => {
    if (!(error instanceof MemoryInUseError)) throw error;
    throw new MemoryInUseError(error.exit, error.message, SHARE);
  });
  return { transport, key: undefined, searchKind, close };
}
