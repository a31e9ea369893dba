import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { startAdmin } from '../../src/admin/server.ts';
import { LIMITS, type Limits } from '../../src/core/limits.ts';
import { createLog, type LineSink } from '../../src/core/log.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { compileRuntime } from '../../src/server/runtime/runtime.ts';
import { WorkerPool } from '../../src/server/workers/worker-pool.ts';
import { AGCTL } from './process.ts';
import { type HttpReply, type SendOptions, send } from './send.ts';

/** A gateway with workers: its primary process is this one. */
export interface WorkerGateway extends AsyncDisposable {
  readonly url: string;
  /** Origin of its admin server. */
  readonly admin: string;
  readonly pool: WorkerPool;
  readonly accessLog: readonly string[];
  readonly log: readonly string[];
  /** Files that policies and listeners read again when they change. */
  reloadedFiles(): Iterable<string>;
  /** Process ids of the workers that take connections, in order. */
  pids(): number[];
  /** Activates another configuration. Rejects with the reason if it is refused. */
  reload(config: object): Promise<void>;
}

export interface WorkerGatewayOptions {
  readonly workers?: number;
  readonly limits?: Partial<Limits>;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a gateway whose requests are handled by worker processes. */
export async function workerGateway(
  config: object,
  { workers = 2, limits = {}, env = {} }: WorkerGatewayOptions = {},
): Promise<WorkerGateway> {
  const { FORCE_COLOR, NODE_OPTIONS, VITEST, ...inherited } = process.env;
  const environment = { ...inherited, ...env };
  const accessLog = memorySink();
  const logLines = memorySink();
  const log = createLog(logLines, 'debug,request=info', 'text');
  const folder = tmpdir();
  const sinks = { log: logLines, accessLog };
  const allLimits = { ...LIMITS, ...limits };
  const pool = new WorkerPool({
    program: AGCTL,
    args: ['gateway', 'worker'],
    env: environment,
    count: workers,
    folder,
    log,
    sinks,
    limits: allLimits,
  });
  const compile = (text: string, previous?: ReturnType<typeof compileRuntime>['runtime']) => {
    const loaded = loadConfigText(text, 'test.yaml', environment);
    if (loaded.config === undefined)
      throw new Error(loaded.diagnostics.map(({ message }) => message).join('\n'));
    const { source } = loaded;
    const { runtime } = compileRuntime({
      config: loaded.config,
      source,
      log,
      folder,
      env: environment,
      previous,
      sharing: pool.sharing,
    });
    return { config: loaded.config, source, runtime, diagnostics: [] };
  };
  let served = compile(JSON.stringify(config));
  await pool.start(served.runtime);
  const adminServer = await startAdmin(
    { kind: 'tcp', hosts: ['127.0.0.1'], port: 0 },
    {
      gateway: pool,
      served: () => served,
      folder,
      log,
      stop: () => pool.close(),
    },
  );
  return {
    url: `http://127.0.0.1:${pool.listeners[0]?.port}`,
    admin: adminServer.url as string,
    pool,
    accessLog: accessLog.lines,
    log: logLines.lines,
    reloadedFiles: () => served.runtime.reloadedFiles.keys(),
    pids: () => pool.processes.map(({ pid }) => pid),
    async reload(next) {
      const compiled = compile(JSON.stringify(next), served.runtime);
      await pool.reload(compiled.runtime);
      served = compiled;
    },
    [Symbol.asyncDispose]: async () => {
      await adminServer.close();
      await pool.close();
    },
  };
}

function memorySink(): LineSink & { lines: string[] } {
  const lines: string[] = [];
  const write = (text: string): void => void lines.push(...text.split(/(?<=\n)/));
  return { lines, write, dropped: 0, flush: () => Promise.resolve() };
}

const UNSHARED = new Agent({ keepAlive: false });

/** One request on a connection of its own. Consecutive connections go to different workers. */
export const freshly = (url: string, options: SendOptions = {}): Promise<HttpReply> =>
  send(url, { ...options, agent: UNSHARED });
