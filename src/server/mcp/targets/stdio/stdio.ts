import { existsSync } from 'node:fs';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { z } from 'zod';
import { durationSchema } from '../../../../core/duration.ts';
import { elementsOf, textIn } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import type { Redactor } from '../../../../core/redact.ts';
import { flag, list, mapping, nonEmpty } from '../../../../core/schema/mapping.ts';
import type { CompileContext } from '../../../kernel/compile-context.ts';
import { type Channel, type ChannelEvents, defineTarget, type Target } from '../../connection/target.ts';
import { mcpProcessOf } from '../../process.ts';
import { type Child, type Command, OVERSIZED, startChild } from './child.ts';
import {
  childEnvironment,
  environmentRedactor,
  findCommand,
  isFolder,
  workingFolder,
} from './environment.ts';
import { SharedServer } from './shared-server.ts';
import { StdoutMessages } from './stdout-messages.ts';
import { WarmChildren } from './warm-children.ts';

const schema = z.lazy(() =>
  mapping(
    'A local MCP server that the gateway starts as a child process, one per session, and uses over stdin and stdout.',
    {
      cmd: nonEmpty.describe('Command that starts the MCP server. Looked up on PATH; no shell is involved.'),
      args: list('Arguments of the command, passed unchanged.', z.string()),
      env: z
        .record(z.string(), z.string())
        .default({})
        .meta({ secret: true })
        .describe(
          "Environment variables for the server, in addition to those that it inherits from the gateway: PATH, HOME, LANG and the like; certificates and proxies (NODE_EXTRA_CA_CERTS, SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY, ...), with a proxy's password if its URL has one; npm_config_*, UV_* and PIP_*.",
        ),
      inheritEnv: flag(
        "Pass the gateway's whole environment to the server. Off by default, because it may contain keys of other services.",
        false,
      ),
      shared: flag(
        'Run one process for all sessions of the backend instead of one per session. For servers without state per client: all callers see the same state, and the server can neither send requests nor log messages to a client.',
        false,
      ),
      cwd: nonEmpty
        .optional()
        .describe(
          'Working folder of the server, relative to the folder of the configuration file, which is the default.',
        ),
      warm: z
        .int()
        .min(0)
        .max(64)
        .default(0)
        .describe(
          'Number of processes that are started in advance, so that a new session does not wait for the start of the command. Each is given to one session and then replaced. They count towards `config.mcp.maxChildren` and are the first to be stopped at that limit.',
        ),
      idleTimeout: durationSchema
        .optional()
        .describe(
          "Stops the process of a session that has been unused for this time; the session's next request starts another. For servers without state: only the log level and resource subscriptions are restored, and a stopped server sends no updates. Off by default. With `shared`: how long the process is kept after its last session.",
        ),
      clear_env: flag('Start with an empty environment: the server only gets `env`.', false),
    },
  ).meta({ foreignNames: { command: 'cmd', environment: 'env' } }),
);

/** A server started as a child process, one per session, in newline-delimited JSON-RPC (MCP "stdio" transport). */
export const stdio = defineTarget({
  key: 'stdio',
  schema,
  compile(name, config, context) {
    const program = programIn(config, context.folder);
    if (program !== undefined)
      context.at('cmd').report({
        code: 'AGW0104',
        message: '`cmd` contains spaces but is run as one executable name (no shell)',
        help: `move what follows \`${program}\` to \`args\`, each word as an entry, as in \`{ cmd: npx, args: [-y, some-server] }\``,
      });
    warnIfMissing(name, config, context);
    warnIfConfigIsServed(config, context);
    if (config.shared && config.warm > 0)
      context.at('warm').report({
        code: 'AGW0105',
        message: '`warm` cannot be used with a process that all sessions share',
        label: 'with `shared`, or `statefulMode: stateless` of the backend',
        help: 'remove `warm`; with `idleTimeout`, the process is kept after its last session',
      });
    const command: Command = {
      cmd: config.cmd,
      args: config.args,
      env: childEnvironment(config, context.env),
      cwd: workingFolder(config, context.folder),
      ...cleaners(context, () => command.env),
    };
    const target: Target = {
      name,
      limits: context.settings.limits,
      resumable: false,
      endpoint: undefined,
      ...(config.idleTimeout !== undefined && !config.shared && { idleTimeout: config.idleTimeout }),
      open: (events) => (shared === undefined ? open(events) : shared.join(events)),
      clean: command.clean,
      standBy: (isActive) => warm?.standBy(isActive),
      close: async () => {
        await Promise.all([shared?.close(), warm?.close()]);
      },
    };
    const { children: slots, share } = mcpProcessOf(context.settings);
    const start = (events: ChannelEvents): Promise<Channel> =>
      openChannel({
        target,
        command,
        events,
        log: context.log,
        startHint: startHint(config),
        hint: environmentHint(config),
        exited: () => {
          slots.release();
          warm?.fill();
        },
      });
    const open = async (events: ChannelEvents): Promise<Channel> => {
      const spare = warm?.take(events);
      if (spare !== undefined) return spare;
      await slots.take();
      return start(events);
    };
    const spares = share(config.warm);
    const warm =
      spares > 0 && !config.shared
        ? new WarmChildren(spares, { name, log: context.log, limits: target.limits, slots, start })
        : undefined;
    const shared = config.shared
      ? new SharedServer(target, context.log, open, config.idleTimeout)
      : undefined;
    return target;
  },
});

/**
 * The program in a command that contains arguments, too. A path may contain spaces, as in
 * `/Applications/My Server/bin/server`, and even ` -x`, if there is such a file.
 */
function programIn({ cmd, cwd }: z.output<typeof schema>, folder: string): string | undefined {
  const [, name, path] = /^([^\s/\\]+)\s|^(.+?)\s+--?[a-z]/i.exec(cmd.trim()) ?? [];
  const program = name ?? path;
  return program === undefined || existsSync(resolve(workingFolder({ cwd }, folder), cmd))
    ? undefined
    : program;
}

/**
 * Logs a warning for a missing command or working folder, which would otherwise only be noticed by the first client. Not a
 * configuration error: the file may be validated on another machine, or the command installed later. The command is not
 * searched on Windows, which searches differently.
 */
function warnIfMissing(name: string, config: z.output<typeof schema>, context: CompileContext): void {
  const { env, log } = context;
  const folder = workingFolder(config, context.folder);
  if (!isFolder(folder)) {
    log.warn('mcp::stdio', 'working folder of a target was not found: create it, or correct stdio.cwd', {
      target: name,
      cwd: folder,
    });
    return;
  }
  if (process.platform === 'win32' || findCommand(config.cmd, childEnvironment(config, env), folder)) return;
  log.warn(
    'mcp::stdio',
    'command of a target was not found, or is not executable: install it, or set stdio.cmd to its full path',
    {
      target: name,
      cmd: config.cmd,
    },
  );
}

/**
 * Reports a folder argument of a filesystem server in which the configuration is: a caller could read `gateway.env`, and add a
 * target with any command to the configuration, which is reloaded.
 */
function warnIfConfigIsServed(config: z.output<typeof schema>, context: CompileContext): void {
  const from = [config.cmd, ...config.args].findIndex((word) => /filesystem/i.test(word));
  if (from === -1) return;
  for (const [index, folder] of config.args.entries()) {
    if (index < from || folder.startsWith('-')) continue;
    const toConfig = relative(resolve(workingFolder(config, context.folder), folder), context.folder);
    if (isAbsolute(toConfig) || toConfig.split(sep)[0] === '..') continue;
    context.at('args', index).report({
      code: 'AGW0314',
      message: 'callers of this server can change the configuration of the gateway, and read `gateway.env`',
      label: 'the configuration is in this folder',
      help: 'give the server a folder of its own, such as `./files`: a target that a caller adds to the configuration starts any program',
    });
  }
}

/** Functions that remove secrets: those of the configuration (its redactor) and those of the server's environment. */
function cleaners(
  { redactor }: CompileContext,
  env: () => Command['env'],
): Pick<Command, 'clean' | 'cleanArguments'> {
  let inherited: Redactor | undefined;
  const clean = (line: string): string => {
    inherited ??= environmentRedactor(env());
    return redactor().line(inherited.text(line));
  };
  return { clean, cleanArguments: (args) => elementsOf(redactor().value(args, 'args')).map(textIn) };
}

/** Hint for the log about a server that does not answer: it may lack an environment variable, such as a custom proxy's. */
function environmentHint({ inheritEnv, clear_env }: z.output<typeof schema>): string {
  if (clear_env) return 'its environment only has the variables in stdio.env (clear_env); ';
  if (inheritEnv) return '';
  return "its environment only has some of the gateway's variables (add more with stdio.env, or all with stdio.inheritEnv); ";
}

/** Hint for the log about a server that is slow to start. That alone does not indicate a wrong environment. */
function startHint({ shared, warm }: z.output<typeof schema>): string {
  const advice = shared || Number(warm) > 0 ? 'install it' : 'install it, or set stdio.warm';
  return `it is still starting and joins the session when it is ready (a package that npx downloads starts slowly: ${advice}); `;
}

interface Opening {
  readonly target: Target;
  readonly command: Command;
  readonly events: ChannelEvents;
  readonly log: Log;
  /** For the log, about a server that has not answered yet. */
  readonly startHint: string;
  /** For the log, about a server that does not answer. */
  readonly hint: string;
  /** The child has exited, or was not started: its slot is free. */
  exited(): void;
}

async function openChannel(opening: Opening): Promise<Channel> {
  const { target, command, events, log, startHint, hint, exited } = opening;
  const { name } = target;
  const messages = new StdoutMessages(events);
  let lastUsed = performance.now();
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
      exited: (failure) => {
        exited();
        messages.end();
        log.debug('mcp::stdio', 'target ended', { target: name, reason: failure.detail });
        events.closed(failure);
      },
    });
  } catch (error) {
    exited();
    throw error;
  }
  log.debug('mcp::stdio', 'target started', { target: name, pid: child.pid, cmd: command.cmd });

  function receive(bytes: Buffer): void {
    lastUsed = performance.now();
    if (bytes === OVERSIZED) {
      log.warn('mcp::stdio', `target wrote a line over ${LIMITS.targetMessageBytes} bytes and was stopped`, {
        target: name,
      });
      events.closed(new Error(`the server wrote a message over ${LIMITS.targetMessageBytes} bytes`));
      void child.stop();
      return;
    }
    try {
      messages.line(bytes);
    } catch (error) {
      // A line must not end the process.
      log.internalError('mcp::stdio', error, { target: name });
    }
  }

  return {
    sessionId: undefined,
    hasProcess: true,
    get lastUsed() {
      return lastUsed;
    },
    send(text, { id }) {
      lastUsed = performance.now();
      if (child.backlog > LIMITS.childInputBytes) {
        if (id !== undefined) events.failed(id, new Error('the server does not read its input'));
        return;
      }
      // A line break ends a message. Inside JSON text it can only be white space between tokens.
      child.write(/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ') : text);
    },
    agreed: () => undefined,
    abandon: () => undefined,
    listen: () => undefined,
    pause: (paused) => child.pause(paused),
    diagnosis: (isStarting) => `${isStarting === true ? startHint : hint}${child.describe()}`,
    close: () => child.stop(),
  };
}
