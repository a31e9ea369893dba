import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { LIMITS } from '../../../core/limits.ts';
import type { Redactor } from '../../../core/redact.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { noteNoise } from '../noise.ts';
import { mcpProcessOf } from '../process.ts';
import { type Channel, type ChannelEvents, defineTarget, type Target } from '../target.ts';
import { type Child, type Command, OVERSIZED, startChild } from './child.ts';
import { childEnvironment, environmentRedactor } from './environment.ts';
import { findCommand } from './find-command.ts';
import { SharedServer } from './shared-server.ts';

const schema = z
  .strictObject({
    cmd: z
      .string()
      .min(1)
      .describe('Command that starts the MCP server. Looked up on PATH; no shell is involved.'),
    args: z.array(z.string()).default([]).describe('Arguments of the command, passed on as they are.'),
    env: z
      .record(z.string(), z.string())
      .default({})
      .meta({ secret: true })
      .describe(
        "Environment variables for the server, in addition to those of the gateway that it gets anyway: PATH, HOME, LANG and the like; certificates and proxies (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY, ...), with a proxy's password if its URL has one; npm_config_*, UV_* and PIP_*.",
      ),
    inheritEnv: z
      .boolean()
      .default(false)
      .describe(
        "Give the server the gateway's whole environment. Off by default: it may hold keys of other services.",
      ),
    shared: z
      .boolean()
      .default(false)
      .describe(
        'Run one process for all sessions of the backend instead of one for each. For servers that keep nothing of a client: all callers see the same state, and the server can neither ask a client nor log to one.',
      ),
    clear_env: z.boolean().default(false).describe('Start from an empty environment: only `env` is given.'),
  })
  .describe(
    'A local MCP server that the gateway starts, one process per session, and speaks to over stdin and stdout.',
  )
  .meta({ foreignNames: { command: 'cmd', environment: 'env' } });

/** A server started as a child process, one per session, in newline-delimited JSON-RPC (MCP "stdio" transport). */
export const stdio = defineTarget({
  key: 'stdio',
  schema,
  compile(name, config, context) {
    if (hasArguments(config.cmd))
      context.at('cmd').report({
        code: 'AGW0104',
        severity: 'warning',
        message: '`cmd` has spaces, and is one command as a whole: no shell takes it apart',
        help: 'put arguments into `args`, as in `{ cmd: npx, args: [-y, some-server] }`',
      });
    warnIfMissing(name, config, context);
    const command: Command = {
      cmd: config.cmd,
      args: config.args,
      env: childEnvironment(config, context.env),
      cwd: context.folder,
      ...cleaners(context, () => command.env),
    };
    const target: Target = {
      name,
      resumable: false,
      endpoint: undefined,
      open: (events) => (shared === undefined ? own(events) : shared.join(events)),
      clean: command.clean,
      close: () => shared?.close() ?? Promise.resolve(),
    };
    const own = (events: ChannelEvents): Promise<Channel> =>
      openChannel(target, command, events, context, environmentRule(config));
    const shared = config.shared ? new SharedServer(target, context.log, own) : undefined;
    return target;
  },
});

/** Whether words follow the command. A path may have spaces: `/Applications/My Server/bin/server`. */
const hasArguments = (cmd: string): boolean => /^[^\s/\\]+\s|\s--?[a-z]/i.test(cmd.trim());

/**
 * A command that is not there shows with the first client only. Not a problem of the file: it is checked on other machines,
 * too, and the command may come later. Windows has its own rules of finding one.
 */
function warnIfMissing(name: string, config: z.output<typeof schema>, context: CompileContext): void {
  const { env, folder, log } = context;
  if (process.platform === 'win32' || findCommand(config.cmd, childEnvironment(config, env), folder)) return;
  log.warn(
    'mcp::stdio',
    'command of a target was not found: install it, or give its whole path in stdio.cmd',
    {
      target: name,
      cmd: config.cmd,
    },
  );
}

/** What the configuration holds is known to its redactor; what the server inherits is not. */
function cleaners(
  { redactor }: CompileContext,
  env: () => Command['env'],
): Pick<Command, 'clean' | 'cleanArguments'> {
  let inherited: Redactor | undefined;
  const clean = (line: string): string => {
    inherited ??= environmentRedactor(env());
    return redactor().line(inherited.text(line));
  };
  return { clean, cleanArguments: (args) => redactor().value(args, 'args') as string[] };
}

/** A server that waits for ever may miss a variable, such as that of a proxy with a name of its own. */
function environmentRule({ inheritEnv, clear_env }: z.output<typeof schema>): string {
  if (clear_env) return 'it has no variables but those in stdio.env (clear_env); ';
  if (inheritEnv) return '';
  return "it has only some of the gateway's variables: stdio.env adds variables, stdio.inheritEnv all; ";
}

async function openChannel(
  target: Target,
  command: Command,
  events: ChannelEvents,
  context: CompileContext,
  rule: string,
): Promise<Channel> {
  const { name } = target;
  const { log } = context;
  const { children } = mcpProcessOf(context.settings);
  await children.take();
  let child: Child;
  try {
    child = await startChild(command, {
      line: (bytes) => receive(bytes),
      errorLine: (text, suppressed) =>
        log.info('mcp::stdio', text, {
          target: name,
          stream: 'stderr',
          ...(suppressed > 0 ? { suppressed } : {}),
        }),
      gone: (failure) => {
        children.release();
        log.debug('mcp::stdio', 'target ended', { target: name, reason: failure.detail });
        events.closed(failure);
      },
    });
  } catch (error) {
    children.release();
    throw error;
  }
  log.debug('mcp::stdio', 'target started', { target: name, pid: child.pid, cmd: command.cmd });

  function receive(bytes: Buffer): void {
    if (bytes === OVERSIZED) {
      log.warn('mcp::stdio', `target wrote a line over ${LIMITS.targetMessageBytes} bytes and was stopped`, {
        target: name,
      });
      events.closed(new Error(`the server wrote a message over ${LIMITS.targetMessageBytes} bytes`));
      void child.stop();
      return;
    }
    if (!isUtf8(bytes)) {
      noteNoise(target, log, 'the line is not UTF-8');
      return;
    }
    const text = bytes.toString('utf8').trim();
    if (text !== '') events.message(text);
  }

  return {
    sessionId: undefined,
    hasProcess: true,
    send(text, { id }) {
      if (child.backlog > LIMITS.childInputBytes) {
        if (id !== undefined) events.failed(id, new Error('the server does not read its input'));
        return;
      }
      // A line break is the end of a message here; inside JSON it can only be white space between tokens.
      child.write(/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ') : text);
    },
    agreed: () => undefined,
    abandon: () => undefined,
    listen: () => undefined,
    pause: (paused) => child.pause(paused),
    diagnosis: () => `${rule}${child.describe()}`,
    close: () => child.stop(),
  };
}
