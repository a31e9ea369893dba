import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { type CheckContext, type CheckGroup, type CheckResult, fail, notKnown, ok, skip } from './check.ts';

/** Looks for the commands of stdio targets. Starts nothing. */
export const targets: CheckGroup = {
  name: 'targets',
  title: () => 'mcp targets',
  async run(context) {
    if (context.config === undefined) return [notKnown];
    const configured = context.gateways.flatMap(({ routes }) =>
      routes.flatMap(({ config }) => config.backends.flatMap(({ mcp }) => mcp?.targets ?? [])),
    );
    if (configured.length === 0) return [skip('none configured')];
    return configured.map(({ name, stdio, mcp }) => {
      if (stdio !== undefined) return checkCommand(name, stdio.cmd, context);
      return mcp === undefined ? skip(name) : ok(`${name}   ${mcp.host}`);
    });
  },
};

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
