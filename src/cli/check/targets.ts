import { connect } from 'node:net';
import { messageOf } from '../../core/errors.ts';
import type { AddressProbe, CommandProbe } from '../../server/kernel/probe.ts';
import { detailOf } from '../../server/mcp/connection/target-failure.ts';
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
import { Turns } from './turns.ts';

/** Finds the commands of stdio targets, starts them with --start, and connects to HTTP targets. */
export const targets: CheckGroup = {
  name: 'targets',
  title: () => 'mcp targets',
  run(context) {
    if (context.config === undefined) return [check('targets', notKnown)];
    const turns = new Turns();
    const checks = probesOf(context).flatMap(({ probe }) => {
      if (probe.kind === 'command') return check(probe.name, checkCommand(probe, context, turns));
      return probe.kind === 'address' ? check(probe.name, checkAddress(probe, context)) : [];
    });
    return checks.length === 0 ? [check('targets', skip('none configured'))] : checks;
  },
};

/** Timeout for a server to accept a connection, in ms. */
const CONNECT_TIMEOUT = 3_000;

/** Checks that a server accepts connections. Nothing is sent. */
function checkAddress(
  { name, host, signsIn, destination }: AddressProbe,
  { options }: CheckContext,
): CheckResult | Promise<CheckResult> {
  if (options.offline) return skip(`${name}   ${host} not tried (--offline)`);
  if (destination === undefined)
    return fail(`${name}   ${host} is not a URL`, 'correct `host` of the target');
  const { shown, socket: target } = destination;
  return new Promise((resolve) => {
    const socket = connect(target, () => {
      socket.destroy();
      resolve(ok(`${name}   ${shown} accepts connections${signsIn ? '; users sign in there' : ''}`));
    });
    const failed = (why: string): void => {
      socket.destroy();
      resolve(fail(`${name}   ${shown}: ${why}`, 'start the server, or correct `host` of the target'));
    };
    socket.setTimeout(CONNECT_TIMEOUT, () => failed(`no connection within ${CONNECT_TIMEOUT / 1000} s`));
    socket.on('error', (error) => failed(messageOf(error)));
  });
}

function checkCommand(
  probe: CommandProbe,
  context: CheckContext,
  turns: Turns,
): CheckResult | Promise<CheckResult> {
  const { env, folder, options } = context;
  const { name, command } = probe;
  const { workingFolder, hasWorkingFolder, path } = probe.locate(env, folder);
  if (!hasWorkingFolder)
    return fail(`${name}   working folder not found: ${workingFolder}`, 'create it, or correct stdio.cwd');
  if (path === undefined)
    return fail(`${name}   command not found: ${command}`, 'install it, or set stdio.cmd to its full path');
  return options.start ? turns.run(() => started(probe, context)) : ok(`${name}   ${command} is ${path}`);
}

/** Starts the command of a stdio target as the gateway would, and requests its list of tools. */
async function started(probe: CommandProbe, { loaded, env, folder }: CheckContext): Promise<CheckResult> {
  const { name } = probe;
  if (loaded.config === undefined) throw new Error('the configuration is not valid');
  await using at = targetContext({ config: loaded.config, source: loaded.source, env, folder });
  const began = performance.now();
  try {
    const { listed, shown, unmatched } = await probe.tools(at.context);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const hidden = listed.length - shown.length;
    const message = `${name}   started in ${seconds} s, ${list(shown)}${hidden > 0 ? ` (${hidden} left out)` : ''}`;
    if (unmatched.length === 0) return ok(message);
    return warn(
      `${message}; no tool matches ${unmatched.join(', ')}`,
      `correct or remove these names in \`tools\` of the target; it lists ${listed.slice(0, MOST_TOOLS).join(', ') || 'none'}`,
    );
  } catch (error) {
    return fail(
      `${name}   ${detailOf(error)}`,
      "if its stderr does not say why, run the command manually; it gets only part of agctl's environment, and stdio.env adds variables",
    );
  }
}

const MOST_TOOLS = 50;

function list(tools: readonly string[]): string {
  if (tools.length === 0) return 'no tools';
  const more = tools.length - MOST_TOOLS;
  const names = tools.slice(0, MOST_TOOLS).join(', ') + (more > 0 ? ` and ${more} more` : '');
  return `${tools.length === 1 ? '1 tool' : `${tools.length} tools`}: ${names}`;
}
