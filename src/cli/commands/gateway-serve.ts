import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AdminServer, OpenAdmin } from '../../admin/server.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { fileSink } from '../../core/file-sink.ts';
import { LIMITS } from '../../core/limits.ts';
import { createLog, type LineSink, type Log } from '../../core/log.ts';
import { InvalidDirectives, LogDirectives } from '../../core/log-directives.ts';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { counted } from '../../core/render/counted.ts';
import type { CassetteRecorder } from '../../library/cassette/recorder.ts';
import { auditOf } from '../../server/audit/audit.ts';
import { type LoadedConfig, loadConfigText, readConfigFile } from '../../server/config/load.ts';
import type { Config } from '../../server/config/schema.ts';
import { workerCount } from '../../server/config/workers.ts';
import { databaseDiagnostic } from '../../server/database/diagnostic.ts';
import { DatabaseError } from '../../server/database/driver.ts';
import {
  OperatorServerError,
  openSignalServers,
  Readiness,
  type SignalServers,
} from '../../server/observe/operator-servers.ts';
import { findProblems } from '../../server/runtime/find-problems.ts';
import { type Gateway, startGateway } from '../../server/runtime/gateway.ts';
import { PortError, portDiagnostic } from '../../server/runtime/port.ts';
import {
  type CurrentConfig,
  LiveConfig,
  type VariablesFile,
} from '../../server/runtime/reload/live-config.ts';
import { buildRuntime, type Runtime } from '../../server/runtime/runtime.ts';
import type { LineFormats } from '../../server/workers/calls.ts';
import { OwnServing } from '../../server/workers/own-process.ts';
import type { Serving } from '../../server/workers/serving.ts';
import { WorkerError, WorkerPool } from '../../server/workers/worker-pool.ts';
import { openAdminServer, UnopenedError } from '../admin-server.ts';
import { banner, readyFields } from '../banner.ts';
import { configFileOf } from '../config-file.ts';
import { type Context, type Run, wantsColor } from '../context.ts';
import { variablesFile, withFileBeside } from '../env-file.ts';
import { collectWhileIdle } from '../idle-collection.ts';
import { boundNewSpace } from '../new-space.ts';
import { report } from '../report.ts';
import { endProcess, onSighup, type Shutdown, shutdownOnSignals } from '../signals.ts';
import { heldLines, lineFormats } from '../terminal-log.ts';

interface Options {
  readonly file?: string;
  readonly color: string;
  readonly uiWrite?: boolean;
  readonly watch?: boolean;
  /** What records requests. */
  readonly recorder?: CassetteRecorder;
}

const STDOUT = 1;
const STDERR = 2;

/** What every step below needs. */
interface Setup {
  readonly file: string;
  /** Folder that paths of the configuration are relative to. */
  readonly folder: string;
  readonly options: Options;
  readonly context: Context;
  readonly variables: VariablesFile | undefined;
  /** Concerns the file of variables. */
  readonly warning: string | undefined;
  /** Which variables of it have no effect. */
  readonly note: string | undefined;
}

/** Runs the gateway until a signal stops it: loads the file, builds a runtime, opens the servers, waits. */
export const run: Run<Options> = async (options, given) => {
  const started = performance.now();
  const file = configFileOf(options.file, given);
  const { context, warning, note } = withFileBeside(given, file);
  const folder = file === '-' ? context.cwd : dirname(resolve(context.cwd, file));
  const variables = variablesFile(given, file);
  const setup = { file, folder, options, context, variables, warning, note };
  const loaded = await load(setup);
  const output = openOutput(setup, loaded.config);
  let built: Built;
  let opened: Opened;
  try {
    built = await build(setup, loaded, output);
    opened = await open(setup, built);
    announceReady(setup, built, opened, performance.now() - started);
  } catch (error) {
    if (!(error instanceof UnopenedError)) throw error;
    showDiagnostics(setup, loaded, [error.diagnostic]);
    return EXIT_CODES.not_ok.code;
  } finally {
    output.release();
  }
  return wait(setup, built, opened);
};

/** Reads the file. @throws CommandError for an invalid configuration, after reporting its problems */
async function load(setup: Setup): Promise<ValidConfig> {
  const { file, folder, context } = setup;
  const loaded = loadConfigText(readConfigFile(file), file, context.env);
  const { config } = loaded;
  if (config !== undefined) return { ...loaded, config };
  if (setup.warning !== undefined) context.stderr.write(`warning: ${setup.warning}\n`);
  if (setup.note !== undefined) context.stderr.write(`note: ${setup.note}\n`);
  showDiagnostics(setup, loaded, await findProblems(loaded, { folder, env: context.env }));
  throw new CommandError('not_ok', `${file} is not a valid configuration`);
}

type ValidConfig = LoadedConfig & { readonly config: Config };

/** Where log lines go, and in which formats. */
interface Output {
  readonly sinks: { readonly log: LineSink; readonly accessLog: LineSink };
  readonly formats: LineFormats;
  /** Writes lines that a terminal has not shown yet, because the banner comes first. */
  release(): void;
}

function openOutput({ options, context }: Setup, { config }: Config): Output {
  const formats = lineFormats(config.logging.format, options.color, context);
  const sinks = { log: fileSink(STDERR), accessLog: fileSink(STDOUT) };
  if (typeof formats.log === 'string' && typeof formats.accessLog === 'string')
    return { sinks, formats, release: () => undefined };
  const held = { log: heldLines(sinks.log), accessLog: heldLines(sinks.accessLog) };
  return {
    sinks: { log: held.log.sink, accessLog: held.accessLog.sink },
    formats,
    release: () => {
      held.log.release();
      held.accessLog.release();
    },
  };
}

/** A compiled configuration, and where its logs go. */
interface Built {
  readonly served: CurrentConfig;
  readonly log: Log;
  readonly output: Output;
  /** Whether programs read the log: then nothing else is printed. */
  readonly isJson: boolean;
  readonly pool: WorkerPool | undefined;
}

/** Compiles the configuration. @throws CommandError for errors in it, after reporting them */
async function build(setup: Setup, loaded: ValidConfig, output: Output): Promise<Built> {
  const { file, folder, context, warning, note } = setup;
  const { config, source } = loaded;
  const { directives, problem } = initialDirectives(config, context.env);
  const log = createLog(output.sinks.log, directives, output.formats.log);
  if (warning !== undefined) log.warn('agctl', warning);
  if (note !== undefined) log.info('agctl', note);
  if (problem !== undefined) log.warn('agctl', 'RUST_LOG is ignored', { problem });
  const pool = workerPool(setup, config, log, output);
  const { runtime, diagnostics: found } = await buildRuntime({
    config,
    source,
    log,
    folder,
    env: context.env,
    sharing: pool?.sharing,
  });
  const diagnostics = [...loaded.diagnostics, ...found];
  const isValid = diagnostics.every(({ severity }) => severity !== 'error');
  const isJson = config.config.logging.format === 'json';
  if (isJson && isValid) logWarnings(diagnostics, log);
  else showDiagnostics(setup, loaded, diagnostics);
  if (!isValid) {
    await Promise.all([runtime.close(), pool?.close()]);
    throw new CommandError('not_ok', `${file} is not a valid configuration`);
  }
  return { served: { config, runtime, source, diagnostics }, log, output, isJson, pool };
}

/** The workers, if there are several. Requests are recorded in this process only. */
function workerPool(
  { folder, options, context: { env } }: Setup,
  config: Config,
  log: Log,
  { sinks, formats }: Output,
): WorkerPool | undefined {
  const count = options.recorder === undefined ? workerCount(config) : 1;
  if (count === 1) return undefined;
  const program = fileURLToPath(new URL('bin/agctl.js', PACKAGE_ROOT));
  try {
    return new WorkerPool({ program, args: ['gateway', 'worker'], env, count, folder, log, sinks, formats });
  } catch (error) {
    if (!(error instanceof WorkerError)) throw error;
    throw new CommandError('not_ok', error.message, error.help);
  }
}

/** A gateway in this process, or in workers. */
type ServedGateway = Pick<
  Gateway,
  'listeners' | 'reload' | 'filesChanged' | 'isClosing' | 'metrics' | 'close'
>;

/** The running servers. */
interface Opened {
  readonly gateway: ServedGateway;
  readonly admin: AdminServer | undefined;
  /** Undefined if the configuration came from standard input. */
  readonly live: LiveConfig | undefined;
  readonly shutdown: Shutdown;
  readonly signalServers: SignalServers;
}

/** Opens all servers; the gateway is ready afterwards. @throws UnopenedError, after closing what was open */
async function open(setup: Setup, built: Built): Promise<Opened> {
  const { file, folder, options, context, variables } = setup;
  const { served, log, output } = built;
  const { env } = context;
  const readiness = new Readiness();
  const isServing = readiness.begin('gateway');
  // First: no port is announced if its address cannot be opened.
  const openAdmin = await openAdminAddress(built);
  const { gateway, serving, signalServers } = await openGateway(
    built,
    readiness,
    env,
    options.recorder,
  ).catch(async (error: unknown) => {
    await openAdmin?.close();
    throw error;
  });
  const shutdown = shutdownOnSignals({
    log,
    sinks: Object.values(output.sinks),
    drain: () => {
      // Load balancers stop sending requests while open ones finish.
      readiness.begin('draining');
      return gateway.close();
    },
    announce: (signal) => {
      announceShutdown(signal, built);
      void auditOf
        .get(served.runtime.settings)
        ?.record({ action: 'shutdown', outcome: 'done', actor: { kind: 'signal', name: signal } });
    },
  });
  const path = file === '-' ? undefined : resolve(context.cwd, file);
  const live =
    path === undefined
      ? undefined
      : new LiveConfig({ served, gateway, path, file, folder, env, variables, log });
  const admin = openAdmin?.serve({
    gateway: serving(() => (live?.served ?? served).runtime),
    served: () => live?.served ?? served,
    ...(live === undefined ? {} : { reloadState: () => live.state }),
    folder,
    signalPorts: signalServers.ports,
    ...(path === undefined ? {} : { configFile: path }),
    isConfigWritable: options.uiWrite ?? false,
    log,
    webApp: fileURLToPath(new URL('dist/web/admin', PACKAGE_ROOT)),
    stop: () => shutdown.stop(),
  });
  if (options.watch ?? true) await live?.watch();
  onSighup(context, {
    reload: () => {
      if (live !== undefined) void live.reload({ kind: 'signal', name: 'SIGHUP' });
      else log.warn('agctl::reload', 'a configuration from standard input cannot be reloaded');
    },
    stop: () => void shutdown.stop(),
  });
  isServing();
  void auditOf.get(served.runtime.settings)?.check();
  return { gateway, admin, live, shutdown, signalServers };
}

/** Opens the address of the admin server. Closes what was built if that fails. @throws UnopenedError, CommandError */
async function openAdminAddress({ served, log, pool }: Built): Promise<OpenAdmin | undefined> {
  try {
    return await openAdminServer(served, log);
  } catch (error) {
    await Promise.all([served.runtime.close(), pool?.close()]);
    throw error;
  }
}

async function openGateway(
  { served: { config, runtime, source }, log, output: { sinks, formats }, pool }: Built,
  readiness: Readiness,
  env: Context['env'],
  recorder: CassetteRecorder | undefined,
): Promise<
  Pick<Opened, 'gateway' | 'signalServers'> & {
    /** The gateway as the admin server sees it. */
    serving(runtime: () => Runtime): Serving;
  }
> {
  const renderMetrics = (): Promise<string> => pool?.renderMetrics() ?? runtime.metrics.render();
  const encodeMetrics = () => pool?.encodeMetrics() ?? runtime.metrics.encode();
  let signalServers: SignalServers | undefined;
  try {
    signalServers = await openSignalServers({ config, renderMetrics, encodeMetrics, readiness, env, log });
    if (pool !== undefined) {
      await pool.start(runtime);
      return { gateway: pool, serving: () => pool, signalServers };
    }
    const gateway = await startGateway({
      runtime,
      log,
      accessLog: sinks.accessLog,
      accessLogFormat: formats.accessLog,
      tap: recorder?.tap,
    });
    if (recorder !== undefined) gateway.onRequestEnded(recorder.ended);
    recorder?.begin(gateway.listeners);
    return {
      gateway,
      serving: (active) => new OwnServing({ gateway, runtime: active, sinks }),
      signalServers,
    };
  } catch (error) {
    await Promise.all([signalServers?.close(), runtime.close(), pool?.close()]);
    if (error instanceof DatabaseError) throw new UnopenedError(databaseDiagnostic(error, source));
    if (error instanceof WorkerError) throw new CommandError('not_ok', error.message, error.help);
    if (!(error instanceof PortError || error instanceof OperatorServerError)) throw error;
    throw new UnopenedError(portDiagnostic(error, source));
  }
}

/** Waits for the shutdown, then closes everything else. Resolves to the exit code. */
async function wait(
  { context }: Setup,
  { output: { sinks } }: Built,
  { admin, live, shutdown, signalServers }: Opened,
): Promise<number> {
  const stops = [collectWhileIdle(), boundNewSpace(context.env)];
  const code = await shutdown.stopped;
  for (const stop of stops) stop();
  await Promise.all([admin?.close(), signalServers.close(), live?.close()]);
  const all = [sinks.log, sinks.accessLog];
  await Promise.all(all.map((sink) => sink.flush()));
  setTimeout(() => endProcess(code, 'SIGTERM', all), LIMITS.exitGrace).unref();
  return code;
}

function showDiagnostics(
  { options: { color }, context }: Setup,
  loaded: LoadedConfig,
  diagnostics: readonly Diagnostic[],
): void {
  if (diagnostics.length === 0) return;
  const { stderr, env } = context;
  const style = {
    format: 'text',
    color: wantsColor(stderr, color, env),
    width: stderr.columns ?? 100,
    context,
  } as const;
  stderr.write(`${report(diagnostics, [loaded], style)}\n`);
}

function announceReady({ file, context }: Setup, built: Built, { gateway, admin }: Opened, ms: number): void {
  const { config, diagnostics } = built.served;
  const warnings = diagnostics.length === 0 ? '' : `, ${counted(diagnostics.length, 'warning')}`;
  const facts = { file, envFile: context.envFile, warnings, gateway, admin, config, ms };
  if (built.isJson) built.log.info('agctl', 'ready', readyFields(facts));
  else context.stderr.write(banner(facts));
}

/** Through the log, whose writer does not wait for a terminal that was stopped with Ctrl-S. */
function announceShutdown(signal: NodeJS.Signals, { isJson, log, output }: Built): void {
  if (isJson) log.info('agctl', 'finishing open requests', { signal });
  else output.sinks.log.write(`${signal}: finishing open requests; a second signal stops now\n`);
  void output.sinks.log.flush();
}

/** Logs each warning as a line of its own, for programs that read the log. */
function logWarnings(warnings: readonly Diagnostic[], log: Log): void {
  for (const { code, message, help, file, range } of warnings) {
    const at = `${file}:${range.start.line}:${range.start.column}`;
    log.warn('config', message, { code, at, ...(help === undefined ? {} : { help }) });
  }
}

/** RUST_LOG overrides the configuration, as upstream does; an invalid one is reported and ignored. */
function initialDirectives(
  { config }: Config,
  env: Context['env'],
): { directives: LogDirectives; problem?: string } {
  const configured = (): LogDirectives => new LogDirectives(config.logging.level);
  const fromEnv = env['RUST_LOG'] ?? '';
  if (fromEnv === '') return { directives: configured() };
  try {
    return { directives: new LogDirectives(fromEnv) };
  } catch (error) {
    if (!(error instanceof InvalidDirectives)) throw error;
    return { directives: configured(), problem: `\`${error.clause}\`: ${error.hint}` };
  }
}
