import type { LineSink } from '../core/log.ts';
import { logTo } from '../core/log.ts';
import type { Environment } from '../core/yaml/env.ts';
import { loadConfigText } from '../server/config/load.ts';
import { workerCount } from '../server/config/workers.ts';
import { DatabaseError } from '../server/database/driver.ts';
import { findProblems } from '../server/runtime/find-problems.ts';
import { type RunningGateway, startGateway } from '../server/runtime/gateway.ts';
import { PortError, portDiagnostic } from '../server/runtime/port.ts';
import { LiveConfig } from '../server/runtime/reload/live-config.ts';
import { compileRuntime } from '../server/runtime/runtime.ts';
import type { GatewayOptions } from './api.ts';
import { Listeners } from './listeners.ts';
import { configError, withoutErrors } from './problems.ts';

export interface ProgramOptions extends GatewayOptions {
  /** Absolute path of the file of the configuration, if it is one. */
  readonly path: string | undefined;
  readonly folder: string;
  readonly text: string;
}

/** A running gateway with what its program asks of it. */
export interface Program {
  readonly running: RunningGateway;
  readonly live: LiveConfig;
  readonly listeners: Listeners;
  readonly hasPorts: boolean;
  /** What the next reload reads, if the configuration is no file. */
  readonly source: { text: string };
  readonly isFile: boolean;
}

/** What the configuration is called where it has no file. */
const UNNAMED = 'the configuration';

/** Compiles a configuration and opens its ports. @throws ConfigError, and `Error` if a port or its database cannot be opened */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const { path, folder, text, listen: hasPorts = true, watch = false } = options;
  // biome-ignore lint/style/noProcessEnv: the variables of the program, unless it gives others.
  const env: Environment = options.env ?? process.env;
  const file = path ?? UNNAMED;
  const isFile = path !== undefined;
  const loaded = loadConfigText(text, file, env);
  const { config, source } = loaded;
  if (config === undefined)
    throw configError(await findProblems(loaded, { folder, env }), source, env, isFile);
  const listeners = new Listeners();
  // Requests are told as `request` events.
  const log = logTo(
    (...message) => listeners.logged(...message),
    `${config.config.logging.level},request=off`,
  );
  listeners.log = log;
  const compiled = compileRuntime({ config, source, log, folder, env });
  const { runtime } = compiled;
  const diagnostics = [...loaded.diagnostics, ...compiled.diagnostics];
  if (diagnostics.some(({ severity }) => severity === 'error')) {
    await runtime.close();
    throw configError(diagnostics, source, env, isFile);
  }
  let running: RunningGateway;
  try {
    running = await startGateway({ runtime, log, accessLog: NOWHERE, hasSockets: hasPorts });
  } catch (error) {
    if (error instanceof PortError) throw configError([portDiagnostic(error, source)], source, env, isFile);
    if (error instanceof DatabaseError) throw new Error(error.message, { cause: error });
    throw error;
  }
  listeners.listenTo(running);
  if (workerCount(config) > 1)
    log.warn('agctl', 'config.workers has no effect: requests are handled in the process of the program');
  const next = { text };
  const live = new LiveConfig({
    served: { config, runtime, source, diagnostics: withoutErrors(diagnostics) },
    gateway: running,
    path,
    read: () => next.text,
    file,
    folder,
    env,
    log,
  });
  if (watch) await live.watch();
  return { running, live, listeners, hasPorts, source: next, isFile };
}

/** Lines of the access log are not written: its fields are those of events. */
const NOWHERE: LineSink = { write: () => undefined, dropped: 0, flush: () => Promise.resolve() };
