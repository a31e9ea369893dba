import { connect } from 'node:net';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { createLog } from '../../core/log.ts';
import { routesOf } from '../../server/config/plan/plan.ts';
import { hasPrefixes } from '../../server/mcp/backend.ts';
import { outwardName } from '../../server/mcp/names.ts';
import { detailOf } from '../../server/mcp/target-failure.ts';
import { type EndpointConfig, endpointText } from '../../server/mcp/targets/endpoint.ts';
import {
  childEnvironment,
  findCommand,
  isFolder,
  workingFolder,
} from '../../server/mcp/targets/environment.ts';
import { stdio } from '../../server/mcp/targets/stdio.ts';
import { ToolView } from '../../server/mcp/tool-view.ts';
import { toolsOf } from '../../server/mcp/try-target.ts';
import { createContext } from '../../server/runtime/compile-context.ts';
import { compileRuntime } from '../../server/runtime/runtime.ts';
import {
  type CheckContext,
  type CheckGroup,
  type CheckResult,
  check,
  fail,
  notKnown,
  ok,
  skip,
  warn,
} from './check.ts';

/** Finds the commands of stdio targets, starts them with --start, and connects to HTTP targets. */
export const targets: CheckGroup = {
  name: 'targets',
  title: () => 'mcp targets',
  run(context) {
    if (context.config === undefined) return [check('targets', notKnown)];
    const configured = context.gateways.flatMap((gateway) =>
      routesOf(gateway).flatMap(({ backends }) =>
        backends.flatMap(({ config: { mcp } }) =>
          (mcp?.targets ?? []).map((target) => ({
            ...target,
            isPrefixed: mcp !== undefined && hasPrefixes(mcp),
          })),
        ),
      ),
    );
    if (configured.length === 0) return [check('targets', skip('none configured'))];
    const starter = new TargetStarter(context);
    return configured.map(({ name, stdio, mcp, sse, openapi, tools, isPrefixed }) => {
      const view = tools && new ToolView(tools);
      if (stdio !== undefined)
        return check(name, checkCommand({ name, stdio, view, isPrefixed }, context, starter));
      const remote = mcp ?? sse ?? openapi;
      return check(name, remote === undefined ? skip(name) : checkAddress(name, remote, context));
    });
  },
};

/** Timeout for a server to accept a connection, in ms. */
const CONNECT_TIMEOUT = 3_000;

/** Checks that a server accepts connections. Nothing is sent. */
function checkAddress(
  name: string,
  endpoint: EndpointConfig,
  { options }: CheckContext,
): CheckResult | Promise<CheckResult> {
  if (options.offline) return skip(`${name}   ${endpoint.host} not tried (--offline)`);
  const destination = destinationOf(endpoint);
  if (destination === undefined)
    return fail(`${name}   ${endpoint.host} is not a URL`, 'correct `host` of the target');
  const { shown, target } = destination;
  return new Promise((resolve) => {
    const socket = connect(target, () => {
      socket.destroy();
      resolve(ok(`${name}   ${shown} accepts connections`));
    });
    const failed = (why: string): void => {
      socket.destroy();
      resolve(fail(`${name}   ${shown}: ${why}`, 'start the server, or correct `host` of the target'));
    };
    socket.setTimeout(CONNECT_TIMEOUT, () => failed(`no connection within ${CONNECT_TIMEOUT / 1000} s`));
    socket.on('error', (error) => failed(messageOf(error)));
  });
}

/** What a socket connects to, and how it is displayed. */
function destinationOf(
  endpoint: EndpointConfig,
): { shown: string; target: { path: string } | { host: string; port: number } } | undefined {
  const { host } = endpoint;
  if (host.startsWith('unix:')) {
    const path = host.slice('unix:'.length).replace(/^\/\//, '');
    return { shown: `unix:${path}`, target: { path } };
  }
  const text = endpointText(endpoint);
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  return {
    shown: url.host,
    target: {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
    },
  };
}

/** A stdio target, and how clients see its tools. */
interface StdioTarget {
  readonly name: string;
  readonly stdio: StdioConfig;
  readonly view: ToolView | undefined;
  readonly isPrefixed: boolean;
}

function checkCommand(
  target: StdioTarget,
  { env, folder, options }: CheckContext,
  starter: TargetStarter,
): CheckResult | Promise<CheckResult> {
  const { name, stdio: config } = target;
  const { cmd } = config;
  const cwd = workingFolder(config, folder);
  if (!isFolder(cwd))
    return fail(`${name}   working folder not found: ${cwd}`, 'create it, or correct stdio.cwd');
  const found = findCommand(cmd, childEnvironment(config, env), cwd);
  if (found === undefined)
    return fail(`${name}   command not found: ${cmd}`, 'install it, or set stdio.cmd to its full path');
  return options.start ? starter.start(target) : ok(`${name}   ${cmd} is ${found}`);
}

/** The `stdio` section of a target. */
type StdioConfig = Parameters<typeof stdio.compile>[1];

/** Starts the commands of stdio targets as the gateway would, a few at a time, and requests the tool list of each. */
class TargetStarter {
  readonly #context: CheckContext;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(context: CheckContext) {
    this.#context = context;
  }

  async start(target: StdioTarget): Promise<CheckResult> {
    if (this.#running < LIMITS.checkStartConcurrency) this.#running += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.#tools(target);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  async #tools({ name, stdio: config, view, isPrefixed }: StdioTarget): Promise<CheckResult> {
    const { loaded, env, folder } = this.#context;
    if (loaded.config === undefined) throw new Error('the configuration is not valid');
    const options = { config: loaded.config, source: loaded.source, log: silent, env, folder };
    const { runtime } = compileRuntime(options);
    const { settings, redactor, inspection } = runtime;
    const context = {
      ...options,
      settings,
      redactor,
      inspection,
      report: () => undefined,
      dependsOn: () => undefined,
      backend: () => undefined,
      hostnamesOf: () => new Set<string>(),
    };
    const began = performance.now();
    try {
      const target = stdio.compile(name, config, createContext(context, [], new Set(), []));
      const tools = await toolsOf(target, silent);
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      view?.unmatched.listed(tools);
      const shown = tools
        .flatMap((own) => (view === undefined ? own : (view.shown(own) ?? [])))
        .map((tool) => (isPrefixed ? outwardName('tool', name, tool) : tool));
      const hidden = tools.length - shown.length;
      const message = `${name}   started in ${seconds} s, ${list(shown)}${hidden > 0 ? ` (${hidden} left out)` : ''}`;
      const unmatched = view?.unmatched.entries ?? [];
      if (unmatched.length === 0) return ok(message);
      return warn(
        `${message}; no tool matches ${unmatched.join(', ')}`,
        `correct or remove these names in \`tools\` of the target; it lists ${tools.slice(0, MOST_TOOLS).join(', ') || 'none'}`,
      );
    } catch (error) {
      return fail(
        `${name}   ${detailOf(error)}`,
        "if its stderr does not say why, run the command manually; it gets only part of agctl's environment, and stdio.env adds variables",
      );
    } finally {
      await runtime.close();
    }
  }
}

const MOST_TOOLS = 50;

function list(tools: readonly string[]): string {
  if (tools.length === 0) return 'no tools';
  const more = tools.length - MOST_TOOLS;
  const names = tools.slice(0, MOST_TOOLS).join(', ') + (more > 0 ? ` and ${more} more` : '');
  return `${tools.length === 1 ? '1 tool' : `${tools.length} tools`}: ${names}`;
}

const silent = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'off',
  'text',
);
