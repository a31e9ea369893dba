import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AdminServer } from '../../admin/server.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { createLog, fileSink, type LineSink, type Log } from '../../core/log.ts';
import { InvalidDirectives, LogDirectives } from '../../core/log-directives.ts';
import { counted } from '../../core/render/counted.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import type { Config } from '../../server/config/schema.ts';
import { OperatorServerError, openSignalServers } from '../../server/observe/operator-servers.ts';
import { Readiness } from '../../server/observe/readiness.ts';
import { findProblems } from '../../server/runtime/find-problems.ts';
import { type Gateway, startGateway } from '../../server/runtime/gateway.ts';
import { PortError, portDiagnostic } from '../../server/runtime/port.ts';
import { LiveConfig } from '../../server/runtime/reload/live-config.ts';
import { compileRuntime } from '../../server/runtime/runtime.ts';
import { AdminAddressProblem, openAdminServer } from '../admin-server.ts';
import { banner, readyFields } from '../banner.ts';
import { type Context, wantsColor } from '../context.ts';
import { endProcess } from '../end-process.ts';
import { onHangup } from '../hangup.ts';
import type { Run } from '../program.ts';
import { report } from '../report.ts';

interface Options {
  readonly file: string;
  readonly color: string;
  readonly uiWrite?: boolean;
  readonly watch?: boolean;
}

const STDOUT = 1;
const STDERR = 2;

/** Runs the gateway until it is told to stop. The only command that knows how its parts are wired. */
export const run: Run<Options> = async ({ file, color, uiWrite = false, watch = true }, context) => {
  const started = performance.now();
  const loaded = loadConfigText(readConfigFile(file), file, context.env);
  const show = (diagnostics: readonly Diagnostic[]): void => {
    if (diagnostics.length === 0) return;
    const options = {
      format: 'text',
      color: wantsColor(context.stderr, color, context.env),
      width: context.stderr.columns ?? 100,
    } as const;
    context.stderr.write(`${report(diagnostics, [loaded], options)}\n`);
  };
  const folder = file === '-' ? context.cwd : dirname(resolve(context.cwd, file));
  if (loaded.config === undefined) {
    show(await findProblems(loaded, { folder, env: context.env }));
    throw new CommandError('not_ok', `${file} is not a valid configuration`);
  }
  const { config, source } = loaded;
  const logSink = fileSink(STDERR);
  const accessLog = fileSink(STDOUT);
  const { directives, problem } = initialDirectives(config, context.env);
  const log = createLog(logSink, directives, config.config.logging.format);
  if (problem !== undefined) log.warn('agctl', 'RUST_LOG is ignored', { problem });
  const { runtime, diagnostics } = compileRuntime({ config, source, log, folder, env: context.env });
  const all = [...loaded.diagnostics, ...diagnostics];
  const isValid = all.every(({ severity }) => severity !== 'error');
  const isJson = config.config.logging.format === 'json';
  if (isJson && isValid) logWarnings(all, log);
  else show(all);
  if (!isValid) {
    await runtime.close();
    throw new CommandError('not_ok', `${file} is not a valid configuration`);
  }
  const readiness = new Readiness();
  const isServing = readiness.begin('gateway');
  let closeServers: (() => Promise<void>) | undefined;
  let gateway: Gateway;
  try {
    closeServers = await openSignalServers({
      config,
      metrics: runtime.metrics,
      readiness,
      env: context.env,
      log,
    });
    gateway = await startGateway({ runtime, log, accessLog });
  } catch (error) {
    await Promise.all([closeServers?.(), runtime.close()]);
    if (!(error instanceof PortError || error instanceof OperatorServerError)) throw error;
    show([portDiagnostic(error, source)]);
    return EXIT_CODES.not_ok.code;
  }
  const sinks = { log: logSink, accessLog };
  const { stopped, stop } = stoppable({ gateway, readiness, log, sinks: Object.values(sinks) }, (signal) => {
    if (isJson) log.info('agctl', 'finishing open requests', { signal });
    else context.stderr.write(`${signal}: finishing open requests; again stops now\n`);
  });
  const served = { config, runtime, source, diagnostics: all };
  const live =
    file === '-'
      ? undefined
      : new LiveConfig({
          served,
          gateway,
          path: resolve(context.cwd, file),
          file,
          folder,
          env: context.env,
          log,
        });
  let admin: AdminServer | undefined;
  try {
    admin = await openAdminServer({
      gateway,
      served: () => live?.served ?? served,
      ...(live === undefined ? {} : { reloadState: () => live.state }),
      folder,
      ...(file === '-' ? {} : { configFile: resolve(context.cwd, file) }),
      isConfigWritable: uiWrite,
      env: context.env,
      log,
      sinks,
      webApp: fileURLToPath(new URL('../../web/admin', import.meta.url)),
      stop,
    });
  } catch (error) {
    await Promise.all([gateway.close(), closeServers()]);
    if (!(error instanceof AdminAddressProblem)) throw error;
    show([error.diagnostic]);
    return EXIT_CODES.not_ok.code;
  }
  if (live !== undefined) {
    if (watch) await live.watch();
    onHangup(context, { reload: () => void live.reload(), stop: () => void stop() });
  }
  isServing();
  const warnings = all.length === 0 ? '' : `, ${counted(all.length, 'warning')}`;
  const facts = { file, warnings, gateway, admin, config, ms: performance.now() - started };
  if (isJson) log.info('agctl', 'ready', readyFields(facts));
  else context.stderr.write(banner(facts));
  const code = await stopped;
  await Promise.all([admin?.close(), closeServers(), live?.close()]);
  await Promise.all([logSink.flush(), accessLog.flush()]);
  setTimeout(() => endProcess(code, 'SIGTERM', [logSink, accessLog]), LIMITS.exitGrace).unref();
  return code;
};

/** Warnings where logs are for programs: a line each. */
function logWarnings(warnings: readonly Diagnostic[], log: Log): void {
  for (const { code, message, help, file, range } of warnings) {
    const at = `${file}:${range.start.line}:${range.start.column}`;
    log.warn('config', message, { code, at, ...(help === undefined ? {} : { help }) });
  }
}

/** RUST_LOG wins, as in the program that our configuration is compatible with; a wrong one does not stop anything. */
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

/** What a stop concerns. */
interface Stopping {
  readonly gateway: Gateway;
  readonly readiness: Readiness;
  readonly log: Log;
  readonly sinks: readonly LineSink[];
}

interface Stoppable {
  /** Exit code, once the gateway has drained. */
  readonly stopped: Promise<number>;
  /** Asks for a stop; resolves when the gateway has drained. */
  stop(): Promise<void>;
}

/**
 * Stops the gateway after the first signal, or when asked to: it drains. A second signal ends the process at once. An
 * error that nobody caught is a bug of ours: it is logged once, and the gateway drains rather than serve on in
 * an unknown state.
 */
function stoppable(
  { gateway, readiness, log, sinks }: Stopping,
  announce: (signal: NodeJS.Signals) => void,
): Stoppable {
  const { promise: stopped, resolve: done } = Promise.withResolvers<number>();
  let closing: Promise<void> | undefined;
  const stop = (code: number): Promise<void> => {
    // Balancers send no more while open requests end.
    if (closing === undefined) readiness.begin('draining');
    closing ??= gateway.close().then(() => done(code));
    return closing;
  };
  const onBug = (error: unknown): void => {
    log.error('agctl', 'internal error, stopping', {
      problem: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    void stop(EXIT_CODES.bug.code);
  };
  process.on('uncaughtException', onBug);
  process.on('unhandledRejection', onBug);
  const onSignal = (signal: NodeJS.Signals): void => {
    if (closing !== undefined) {
      // Children are killed by the exit handler of their supervisor.
      const { interrupted, not_ok } = EXIT_CODES;
      endProcess(signal === 'SIGINT' ? interrupted.code : not_ok.code, signal, sinks);
      return;
    }
    announce(signal);
    void stop(EXIT_CODES.ok.code);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return { stopped, stop: () => stop(EXIT_CODES.ok.code) };
}
