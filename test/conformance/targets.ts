import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startChild } from './child.ts';

/** What is judged: the gateway in front of a stdio or HTTP fixture, or the fixture alone. */
export type Target = 'stdio' | 'http' | 'direct';

/** A server to judge instead of the fixture: a command line that speaks MCP on stdin and stdout, or the URL of a running one. */
export type OtherServer = { readonly command: string } | { readonly url: string };

/** Something that answers MCP over HTTP. */
export interface Endpoint {
  /** Where clients connect. */
  url: string;
  /** The process that listens there. */
  pid: number;
  /** Ends every process that was started; rejects when one does not exit. */
  stop(): Promise<void>;
}

const fixture = fileURLToPath(new URL('../kit/everything-server.ts', import.meta.url));
const builtGateway = fileURLToPath(new URL('../../bin/agctl.js', import.meta.url));

/** The fixture by itself, over HTTP. */
async function startFixture(): Promise<Endpoint> {
  const child = await startChild([fixture, '--http', '0'], (line) => /^http:\S+$/.exec(line)?.[0]);
  return { url: child.ready, pid: child.pid, stop: child.stop };
}

/** Finds the port in the banner; it counts only once the gateway also said that it is ready. */
function bannerReader(): (line: string) => string | undefined {
  let origin: string | undefined;
  let ready = false;
  return (line) => {
    origin ??= /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    ready ||= line.trimStart().startsWith('ready in');
    return ready ? origin : undefined;
  };
}

/** The gateway to run. */
export interface Program {
  /** Its `agctl.js`; default: the one of this checkout, which must be built. */
  readonly bin?: string | undefined;
  /** `config.workers`. */
  readonly workers?: number | undefined;
  /** Whether it lists tools for searches and in bundles; all of them stay in the list. */
  readonly searches?: boolean | undefined;
}

/** Settings of the MCP backend that change lists and calls on their way, and nothing for the client. */
const SEARCHES = {
  toolSearch: { pinned: ['*'] },
  bundles: [{ name: 'everything', targets: ['*'], when: 'true' }],
};

/**
 * The gateway with one target, so that names reach the client unprefixed.
 *
 * @param target the target's transport as in the configuration
 */
export async function startGateway(
  target: Record<string, unknown>,
  { bin = builtGateway, workers, searches }: Program = {},
): Promise<Endpoint> {
  const dir = await mkdtemp(join(tmpdir(), 'agctl-conformance-'));
  const targets = [{ name: 'everything', ...target }];
  const routes = [{ backends: [{ mcp: { targets, ...(searches && SEARCHES) } }] }];
  const config = { config: { adminAddr: 'off', workers }, gateways: { default: { port: 0, routes } } };
  const file = join(dir, 'config.yaml');
  // JSON is YAML.
  await writeFile(file, JSON.stringify(config, null, 2));
  try {
    const child = await startChild([bin, 'serve', '-f', file], bannerReader());
    const stop = async () => {
      try {
        await child.stop();
      } finally {
        await rm(dir, { recursive: true });
      }
    };
    return { url: `${child.ready}/mcp`, pid: child.pid, stop };
  } catch (error) {
    await rm(dir, { recursive: true });
    throw error;
  }
}

/**
 * The gateway in front of the fixture as a child process.
 *
 * @param env variables for the fixture alone
 * @param settings other members of `stdio`
 */
function startStdioGateway(
  program?: Program,
  env: Record<string, string> = {},
  settings: object = {},
): Promise<Endpoint> {
  // Each session starts its own fixture.
  const { NODE_COMPILE_CACHE } = process.env;
  const cached = NODE_COMPILE_CACHE === undefined ? env : { NODE_COMPILE_CACHE, ...env };
  const stdio = { cmd: process.execPath, args: [fixture], env: cached, ...settings };
  return startGateway({ stdio }, program);
}

/** The gateway in front of the fixture as an HTTP server. */
async function startHttpGateway(program?: Program): Promise<Endpoint> {
  const upstream = await startFixture();
  try {
    const gateway = await startGateway({ mcp: { host: upstream.url } }, program);
    const stop = async () => {
      try {
        await gateway.stop();
      } finally {
        await upstream.stop();
      }
    };
    return { ...gateway, stop };
  } catch (error) {
    await upstream.stop();
    throw error;
  }
}

/** Starts what `target` names. */
export function startTarget(target: Target, program?: Program): Promise<Endpoint> {
  if (target === 'direct') return startFixture();
  return target === 'http' ? startHttpGateway(program) : startStdioGateway(program);
}

/** The gateway in front of another server, which runs in the current folder and with the whole environment. */
export function startGatewayOf(server: OtherServer, program?: Program): Promise<Endpoint> {
  if ('url' in server) return startGateway({ mcp: { host: server.url } }, program);
  // A shell splits the command as its author expects; `exec` leaves no shell between the gateway and the server.
  const args = ['-c', `exec ${server.command}`];
  // Each session has its own process, which takes seconds to start in some languages: more than the suite waits at times.
  const settings = { cwd: process.cwd(), inheritEnv: true, warm: 2 };
  return startGateway({ stdio: { cmd: '/bin/sh', args, ...settings } }, program);
}
