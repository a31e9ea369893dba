import { connect } from 'node:net';
import { messageOf } from '../../core/errors.ts';
import { childEnvironment, findCommand } from '../../server/mcp/targets/environment.ts';
import {
  type CheckContext,
  type CheckGroup,
  type CheckResult,
  check,
  fail,
  notKnown,
  ok,
  skip,
} from './check.ts';
import { type StdioConfig, TargetStarter } from './start-target.ts';

/** Finds the commands of stdio targets, starts them with --start, and connects to HTTP targets. */
export const targets: CheckGroup = {
  name: 'targets',
  title: () => 'mcp targets',
  run(context) {
    if (context.config === undefined) return [check('targets', notKnown)];
    const configured = context.gateways.flatMap(({ routes }) =>
      routes.flatMap(({ config }) => config.backends.flatMap(({ mcp }) => mcp?.targets ?? [])),
    );
    if (configured.length === 0) return [check('targets', skip('none configured'))];
    const starter = new TargetStarter(context);
    return configured.map(({ name, stdio, mcp }) => {
      if (stdio !== undefined) return check(name, checkCommand(name, stdio, context, starter));
      return check(name, mcp === undefined ? skip(name) : checkAddress(name, mcp, context));
    });
  },
};

/** Timeout for a server to accept a connection, in ms. */
const CONNECT_TIMEOUT = 3_000;

/** Checks that a server accepts connections. Nothing is sent. */
function checkAddress(
  name: string,
  { host, port }: { readonly host: string; readonly port?: number | undefined },
  { options }: CheckContext,
): CheckResult | Promise<CheckResult> {
  if (options.offline) return skip(`${name}   ${host} not tried (--offline)`);
  const url = URL.canParse(host) && port === undefined ? new URL(host) : new URL(`http://${host}:${port}`);
  const target = {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
  };
  return new Promise((resolve) => {
    const socket = connect(target, () => {
      socket.destroy();
      resolve(ok(`${name}   ${url.host} accepts connections`));
    });
    const failed = (why: string): void => {
      socket.destroy();
      resolve(fail(`${name}   ${url.host}: ${why}`, 'start the server, or correct mcp.host of the target'));
    };
    socket.setTimeout(CONNECT_TIMEOUT, () => failed(`no connection within ${CONNECT_TIMEOUT / 1000} s`));
    socket.on('error', (error) => failed(messageOf(error)));
  });
}

function checkCommand(
  name: string,
  config: StdioConfig,
  { env, folder, options }: CheckContext,
  starter: TargetStarter,
): CheckResult | Promise<CheckResult> {
  const { cmd } = config;
  const found = findCommand(cmd, childEnvironment(config, env), folder);
  if (found === undefined)
    return fail(`${name}   command not found: ${cmd}`, 'install it, or set stdio.cmd to its full path');
  return options.start ? starter.start(name, config) : ok(`${name}   ${cmd} is ${found}`);
}
