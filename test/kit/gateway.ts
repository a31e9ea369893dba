import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startAdmin } from '../../src/admin/server.ts';
import { LIMITS, type Limits } from '../../src/core/limits.ts';
import { createLog, type LineSink } from '../../src/core/log.ts';
import type { LogDirectives } from '../../src/core/log-directives.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { type Gateway, startGateway } from '../../src/server/runtime/gateway.ts';
import { LiveConfig } from '../../src/server/runtime/reload/live-config.ts';
import { buildRuntime } from '../../src/server/runtime/runtime.ts';
import { OwnServing } from '../../src/server/workers/own-process.ts';
import { until } from './until.ts';

/** Lines on single requests cost them a tracer, which requests seldom have. */
const QUIET_REQUESTS = 'debug,request=info,proxy=info,auth=info,llm=info,mcp::call=info';

/** A real gateway in this process, on a free port, with its log lines kept. Close it with `await using`. */
export interface TestGateway extends AsyncDisposable {
  /** Origin of the first port. */
  readonly url: string;
  readonly port: number;
  readonly ports: readonly number[];
  /** Access-log lines, as written. */
  readonly accessLog: readonly string[];
  /** Messages of the gateway about itself. */
  readonly log: readonly string[];
  /** Waits for the `count`-th access-log line (from 1) and returns its fields. */
  accessLine(count: number): Promise<Record<string, string>>;
  /** The running gateway itself. */
  readonly running: Gateway;
  /** Origin of its admin server, when one was asked for. */
  readonly admin: string;
  /** Reads its configuration again, when it was started with `live`. */
  readonly live: LiveConfig;
  /** Levels of its log, to be changed while it runs. */
  readonly directives: LogDirectives;
  close(): Promise<void>;
}

export interface TestGatewayOptions {
  readonly env?: Record<string, string | undefined>;
  readonly folder?: string;
  /** Directives of the log; otherwise everything down to debug, but what is said of single requests. */
  readonly level?: string;
  /** Opens an admin server, too. */
  readonly admin?: boolean;
  /** Of the admin server; any free one otherwise. */
  readonly adminPort?: number;
  /** Writes the configuration into `folder`; `true` lets the admin server write it, too. */
  readonly uiWrite?: boolean;
  /** Writes the configuration into `folder`, to be read again: when it changes, or when the test says so. */
  readonly live?: 'watched' | 'asked';
  /** Name of that file, relative to the folder; `test.yaml` otherwise. It must be there when it is not that. */
  readonly file?: string;
  /** Folder of the built pages. */
  readonly webApp?: string;
  /** Limits that differ from `LIMITS`. */
  readonly limits?: Partial<Limits>;
}

/** Starts a gateway from YAML. Throws with every diagnostic when the configuration has an error. */
export async function gateway(
  yaml: string,
  {
    env = {},
    folder = tmpdir(),
    level,
    admin = false,
    adminPort = 0,
    uiWrite,
    live,
    file = 'test.yaml',
    webApp,
    limits = {},
  }: TestGatewayOptions = {},
): Promise<TestGateway> {
  const environment = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env };
  const { config, source, diagnostics } = loadConfigText(yaml, 'test.yaml', environment);
  if (config === undefined)
    throw new Error(diagnostics.map(({ message, path }) => `${path.join('.')}: ${message}`).join('\n'));
  const path = join(folder, file);
  if (uiWrite !== undefined || (live !== undefined && file === 'test.yaml')) writeFileSync(path, yaml);
  const accessLog = memorySink();
  const logLines = memorySink();
  const log = createLog(logLines, level ?? QUIET_REQUESTS, 'text');
  const compiled = await buildRuntime({ config, source, log, folder, env: environment, limits });
  const errors = compiled.diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length > 0)
    throw new Error(errors.map(({ message, path }) => `${path.join('.')}: ${message}`).join('\n'));
  const running = await startGateway({ runtime: compiled.runtime, log, accessLog });
  const ports = running.listeners.map(({ port }) => port);
  const { runtime } = compiled;
  const served = { config, runtime, source, diagnostics: [...diagnostics, ...compiled.diagnostics] };
  const options = { served, gateway: running, path, file: 'test.yaml', folder, env: environment, log };
  const reloads = new LiveConfig(options);
  if (live === 'watched') await reloads.watch();
  let closing: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    closing ??= running.close();
    return closing;
  };
  const adminServer = admin
    ? await startAdmin(
        { kind: 'tcp', hosts: ['127.0.0.1'], port: adminPort },
        {
          gateway: new OwnServing({
            gateway: running,
            runtime: () => reloads.served.runtime,
            sinks: { log: logLines, accessLog },
          }),
          served: () => reloads.served,
          ...(live === undefined ? {} : { reloadState: () => reloads.state }),
          folder,
          ...(uiWrite === undefined ? {} : { configFile: path, isConfigWritable: uiWrite }),
          ...(webApp === undefined ? {} : { webApp }),
          log,
          stop,
        },
        { ...LIMITS, ...limits },
      )
    : undefined;
  const close = async (): Promise<void> => {
    await Promise.all([stop(), reloads.close()]);
    await adminServer?.close();
  };
  return {
    url: `http://127.0.0.1:${ports[0]}`,
    port: ports[0] as number,
    ports,
    accessLog: accessLog.lines,
    log: logLines.lines,
    accessLine: async (count) => {
      await until(() => accessLog.lines.length >= count);
      return parseAccessLine(accessLog.lines[count - 1] as string);
    },
    running,
    live: reloads,
    admin: adminServer?.url ?? '',
    directives: log.directives,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function memorySink(): LineSink & { lines: string[] } {
  const lines: string[] = [];
  return { lines, write: (line) => void lines.push(line), dropped: 0, flush: () => Promise.resolve() };
}

/** The `key=value` pairs of a text line; quoted values are unquoted. */
export function parseAccessLine(line: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [, key, quoted, plain] of line.matchAll(
    / ([a-z_A-Z0-9.]+)=(?:("(?:[^"\\]|\\.)*")|(.*?)(?= [a-z_A-Z0-9.]+=|\n))/g,
  )) {
    fields[key as string] = quoted === undefined ? (plain as string) : (JSON.parse(quoted) as string);
  }
  return fields;
}
