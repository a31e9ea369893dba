import { connect } from 'node:net';
import { pathText } from '../../core/diagnostic.ts';
import { messageOf } from '../../core/errors.ts';
import type { AddressProbe, CommandProbe, ListedTools } from '../../server/kernel/probe.ts';
import { detailOf, UpstreamStatusError } from '../../server/mcp/connection/target-failure.ts';
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
import { probesOf } from './probes.ts';
import { targetContext } from './target-context.ts';
import { checkToolNames } from './tool-names.ts';
import { Turns } from './turns.ts';

/** Finds the commands of stdio targets and connects to HTTP targets. With --start, starts the commands, and lists all tools. */
export const targets: CheckGroup = {
  name: 'targets',
  title: () => 'mcp targets',
  run(context) {
    if (context.config === undefined) return [check('targets', notKnown)];
    const turns = new Turns();
    const probes = probesOf(context).flatMap(({ probe, path }): Probed[] =>
      probe.kind === 'models' ? [] : [{ probe, backend: pathText(path) }],
    );
    if (probes.length === 0) return [check('targets', skip('none configured'))];
    const checked = probes.map((each) => ({ ...each, outcome: outcomeOf(each.probe, context, turns) }));
    const checks = checked.map(({ probe, outcome }) =>
      check(
        probe.name,
        outcome.then(({ result }) => result),
      ),
    );
    if (!context.options.start) return checks;
    const listed = checked.map(({ outcome, ...each }) => ({
      ...each,
      tools: outcome.then(({ tools }) => tools),
    }));
    return [...checks, ...checkToolNames(context, listed)];
  },
};

interface Probed {
  readonly probe: CommandProbe | AddressProbe;
  /** Path of its backend. */
  readonly backend: string;
}

/** The result for a target, and its tools if they were listed. */
interface Outcome {
  readonly result: CheckResult;
  readonly tools?: ListedTools;
}

const outcomeOf = (probe: Probed['probe'], context: CheckContext, turns: Turns): Promise<Outcome> =>
  probe.kind === 'command' ? checkCommand(probe, context, turns) : checkAddress(probe, context, turns);

/** Timeout for a server to accept a connection, in ms. */
const CONNECT_TIMEOUT = 3_000;

/** Checks that a server accepts connections, and with --start lists its tools. */
async function checkAddress(probe: AddressProbe, context: CheckContext, turns: Turns): Promise<Outcome> {
  const { name, host, signsIn, destination } = probe;
  if (context.options.offline) return { result: skip(`${name}   ${host} not tried (--offline)`) };
  if (destination === undefined)
    return { result: fail(`${name}   ${host} is not a URL`, 'correct `host` of the target') };
  const { shown, socket } = destination;
  const problem = await connectionProblem(socket);
  if (problem !== undefined)
    return {
      result: fail(`${name}   ${shown}: ${problem}`, 'start the server, or correct `host` of the target'),
    };
  const message = `${name}   ${shown} accepts connections${signsIn ? '; users sign in there' : ''}`;
  if (!context.options.start) return { result: ok(message) };
  const found = await turns.run(() => listOf(probe, context));
  if ('tools' in found) return listedAs(message, found.tools);
  const isRefused = found.error instanceof UpstreamStatusError && [401, 403].includes(found.error.status);
  if (isRefused && signsIn) return { result: ok(message) };
  return {
    result: warn(
      `${message}, but did not list its tools: ${detailOf(found.error)}`,
      'correct the address or `backendAuth` of the target; a server that needs the credential of a client lists none here',
    ),
  };
}

/** Why a server does not accept connections; undefined if it does. */
function connectionProblem(
  to: NonNullable<AddressProbe['destination']>['socket'],
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(to, () => ended(undefined));
    const ended = (problem: string | undefined): void => {
      socket.destroy();
      resolve(problem);
    };
    socket.setTimeout(CONNECT_TIMEOUT, () => ended(`no connection within ${CONNECT_TIMEOUT / 1000} s`));
    socket.on('error', (error) => ended(messageOf(error)));
  });
}

async function checkCommand(probe: CommandProbe, context: CheckContext, turns: Turns): Promise<Outcome> {
  const { env, folder, options } = context;
  const { name, command } = probe;
  const { workingFolder, hasWorkingFolder, path } = probe.locate(env, folder);
  if (!hasWorkingFolder)
    return {
      result: fail(`${name}   working folder not found: ${workingFolder}`, 'create it, or correct stdio.cwd'),
    };
  if (path === undefined)
    return {
      result: fail(
        `${name}   command not found: ${command}`,
        'install it, or set stdio.cmd to its full path',
      ),
    };
  if (!options.start) return { result: ok(`${name}   ${command} is ${path}`) };
  const found = await turns.run(() => listOf(probe, context));
  if ('tools' in found) return listedAs(`${name}   started in ${found.seconds} s`, found.tools);
  return {
    result: fail(
      `${name}   ${detailOf(found.error)}`,
      "if its stderr does not say why, run the command manually; it gets only part of agctl's environment, and stdio.env adds variables",
    ),
  };
}

type List = { readonly tools: ListedTools; readonly seconds: string } | { readonly error: unknown };

/** Connects to a target as the gateway would, and requests its list of tools. */
async function listOf(probe: Probed['probe'], { loaded, env, folder }: CheckContext): Promise<List> {
  if (loaded.config === undefined) throw new Error('the configuration is not valid');
  await using at = targetContext({ config: loaded.config, source: loaded.source, env, folder });
  const began = performance.now();
  try {
    const tools = await probe.tools(at.context);
    return { tools, seconds: ((performance.now() - began) / 1000).toFixed(1) };
  } catch (error) {
    return { error };
  }
}

function listedAs(before: string, tools: ListedTools): Outcome {
  const { listed, shown, unmatched } = tools;
  const hidden = listed.length - shown.length;
  const message = `${before}, ${list(shown)}${hidden > 0 ? ` (${hidden} left out)` : ''}`;
  if (unmatched.length === 0) return { result: ok(message), tools };
  const result = warn(
    `${message}; no tool matches ${unmatched.join(', ')}`,
    `correct or remove these names in \`tools\` of the target; it lists ${listed.slice(0, MOST_TOOLS).join(', ') || 'none'}`,
  );
  return { result, tools };
}

const MOST_TOOLS = 50;

function list(tools: readonly string[]): string {
  if (tools.length === 0) return 'no tools';
  const more = tools.length - MOST_TOOLS;
  const names = tools.slice(0, MOST_TOOLS).join(', ') + (more > 0 ? ` and ${more} more` : '');
  return `${tools.length === 1 ? '1 tool' : `${tools.length} tools`}: ${names}`;
}
