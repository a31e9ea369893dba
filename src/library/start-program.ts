import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../core/errors.ts';
import { isRecord } from '../core/foreign.ts';
import { type LineSink, logTo } from '../core/log.ts';
import type { Environment } from '../core/yaml/env.ts';
import { loadConfigText } from '../server/config/load.ts';
import { workerCount } from '../server/config/workers.ts';
import { DatabaseError } from '../server/database/driver.ts';
import { findProblems } from '../server/runtime/find-problems.ts';
import { type RunningGateway, startGateway } from '../server/runtime/gateway.ts';
import type { GatewaySockets } from '../server/runtime/open-ports.ts';
import { PortError, type PortEvents, portDiagnostic } from '../server/runtime/port.ts';
import { LiveConfig } from '../server/runtime/reload/live-config.ts';
import type { RequestEndedListener } from '../server/runtime/request-records.ts';
import { buildRuntime } from '../server/runtime/runtime.ts';
import type { GatewayOptions } from './api.ts';
import type { GatewayConfig } from './config-types.ts';
import { Listeners } from './listeners.ts';
import { configError, withoutErrors } from './problems.ts';

/** A running gateway with what its program asks of it. */
export interface Program {
  readonly running: RunningGateway;
  readonly live: LiveConfig;
  readonly listeners: Listeners;
  readonly sockets: GatewaySockets;
  /** What the next reload reads, if the configuration is not a file. */
  readonly source: { text: string };
  readonly isFile: boolean;
  readonly recorder: ProgramRecorder | undefined;
}

/** What sees the requests of a gateway from its start. */
export interface ProgramRecorder {
  readonly tap: (events: PortEvents) => PortEvents;
  readonly ended: RequestEndedListener;
  /** The gateway has started. */
  begin(listeners: RunningGateway['listeners']): void;
  /** The gateway has ended. */
  close(): Promise<unknown>;
}

/** Which ports are opened. */
const SOCKETS: Readonly<Record<string, GatewaySockets>> = { false: 'none', free: 'free' };

/** What the configuration is called where it has no file. */
const UNNAMED = 'the configuration';

/** Compiles a configuration and opens its ports. @throws ConfigError, and `Error` if its file or database cannot be opened */
export async function startProgram(
  given: GatewayConfig | string | URL,
  options: GatewayOptions,
  recorder?: ProgramRecorder,
): Promise<Program> {
  checkOptions(options);
  const path = pathOf(given);
  const text = path === undefined ? textOf(given) : readFileSync(path, 'utf8');
  const {
    folder = path === undefined ? process.cwd() : dirname(path),
    listen = true,
    watch = false,
  } = options;
  // biome-ignore lint/style/noProcessEnv: the variables of the program, unless it gives others.
  const env: Environment = options.env ?? process.env;
  const file = path ?? UNNAMED;
  const isFile = path !== undefined;
  const loaded = loadConfigText(text, file, env);
  const { config, source } = loaded;
  if (config === undefined)
    throw configError(await findProblems(loaded, { folder, env }), source, env, isFile);
  const listeners = new Listeners(options.on);
  // Requests are told as `request` events.
  const log = logTo(
    (...message) => listeners.logged(...message),
    `${config.config.logging.level},request=off`,
  );
  listeners.log = log;
  const compiled = await buildRuntime({ config, source, log, folder, env, policies: options.policies });
  const { runtime } = compiled;
  const diagnostics = [...loaded.diagnostics, ...compiled.diagnostics];
  if (diagnostics.some(({ severity }) => severity === 'error')) {
    await runtime.close();
    throw configError(diagnostics, source, env, isFile);
  }
  const sockets = SOCKETS[String(listen)] ?? 'configured';
  let running: RunningGateway;
  try {
    running = await startGateway({ runtime, log, accessLog: NOWHERE, sockets, tap: recorder?.tap });
  } catch (error) {
    if (error instanceof PortError) throw configError([portDiagnostic(error, source)], source, env, isFile);
    if (error instanceof DatabaseError) throw new Error(error.message, { cause: error });
    throw error;
  }
  listeners.listenTo(running);
  if (recorder !== undefined) {
    running.onRequestEnded(recorder.ended);
    recorder.begin(running.listeners);
  }
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
  return { running, live, listeners, sockets, source: next, isFile, recorder };
}

/** The absolute path of the file of a configuration. @throws TypeError */
function pathOf(config: unknown): string | undefined {
  if (config instanceof URL) return fileURLToPath(config);
  if (typeof config === 'string') return resolve(config);
  if (isRecord(config)) return undefined;
  throw new TypeError('expected a configuration: an object, or the path or `file:` URL of a file');
}

/** A configuration object as the text of a file. @throws TypeError */
export function textOf(config: unknown): string {
  try {
    return JSON.stringify(config);
  } catch (error) {
    throw new TypeError(`the configuration cannot be written as JSON: ${messageOf(error)}`, { cause: error });
  }
}

const OPTIONS = ['env', 'folder', 'listen', 'on', 'policies', 'watch'];

/** A program in JavaScript may misspell what would close its ports. @throws TypeError */
function checkOptions(options: GatewayOptions): void {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`unknown option \`${unknown}\`: expected ${OPTIONS.join(', ')}`);
  const names = (options.policies ?? []).map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new TypeError(`\`policies\`: two are called ${JSON.stringify(twice)}`);
  const { listen } = options;
  if (listen !== undefined && typeof listen !== 'boolean' && listen !== 'free')
    throw new TypeError(`\`listen\`: expected true, false or 'free', found ${JSON.stringify(listen)}`);
}

/** Lines of the access log are not written: its fields are those of events. */
const NOWHERE: LineSink = { write: () => undefined, dropped: 0, flush: () => Promise.resolve() };
