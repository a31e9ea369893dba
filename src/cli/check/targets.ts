import { accessSync, constants, statSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { type CheckContext, type CheckGroup, type CheckResult, fail, notKnown, ok, skip } from './check.ts';

/** Looks for the commands of stdio targets, starting nothing, and for the servers of the others. */
export const targets: CheckGroup = {
  name: 'targets',
  title: () => 'mcp targets',
  async run(context) {
    if (context.config === undefined) return [notKnown];
    const configured = context.gateways.flatMap(({ routes }) =>
      routes.flatMap(({ config }) => config.backends.flatMap(({ mcp }) => mcp?.targets ?? [])),
    );
    if (configured.length === 0) return [skip('none configured')];
    return Promise.all(
      configured.map(({ name, stdio, mcp }) => {
        if (stdio !== undefined) return checkCommand(name, stdio.cmd, context);
        return mcp === undefined ? skip(name) : checkAddress(name, mcp, context);
      }),
    );
  },
};

/** How long a server may take to accept a connection, in ms. */
const PATIENCE = 3_000;

/** Whether somebody listens there. Nothing is sent. */
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
    socket.setTimeout(PATIENCE, () => failed(`no connection within ${PATIENCE / 1000} s`));
    socket.on('error', (error) => failed(messageOf(error)));
  });
}

function checkCommand(name: string, cmd: string, { env, folder }: CheckContext): CheckResult {
  const found = find(cmd, env['PATH'] ?? '', folder);
  if (found !== undefined) return ok(`${name}   ${cmd} is ${found}`);
  return fail(`${name}   command not found: ${cmd}`, 'install it, or give its whole path in stdio.cmd');
}

function find(cmd: string, path: string, folder: string): string | undefined {
  const candidates =
    cmd.includes('/') || isAbsolute(cmd)
      ? [resolve(folder, cmd)]
      : path.split(delimiter).map((entry) => join(entry, cmd));
  return candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return statSync(candidate).isFile();
    } catch {
      return false;
    }
  });
}
