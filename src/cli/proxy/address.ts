import { resolve } from 'node:path';
import { CommandError } from '../../core/exit-codes.ts';
import { type ListenAddress, parseListenAddress } from '../../core/listen.ts';
import { escapeControls } from '../../core/log.ts';
import { realPath } from '../../core/real-path.ts';
import { DEFAULT_CONFIG_FILE, hasConfigFile } from '../config-file.ts';
import { configuredPart } from '../configured-part.ts';
import type { Context } from '../context.ts';
import { withFileBeside } from '../env-file.ts';

/** The address of an admin server. */
export interface AdminAddress {
  /** The address as text, for messages. */
  readonly shown: string;
  readonly isTls: boolean;
  readonly host: string;
  readonly port: number;
  /** Path of a unix socket, used instead of host and port. */
  readonly socketPath?: string;
  /** Path in front of every endpoint, such as `/gw1`, without a trailing slash. */
  readonly prefix: string;
  /** Where to say which gateway answers: a default address may be that of another gateway than the one that was meant. */
  readonly tell?: Context['stderr'];
  /** Absolute path of the configuration whose gateway is meant, if a command names or finds one. */
  readonly meant?: string;
  /** Where to say that another gateway answers than was meant, or that the audit of the gateway lacks a change. */
  readonly warn?: Context['stderr'];
}

/** The options that select an admin server. */
export interface AdminOptions {
  readonly local?: boolean;
  readonly admin?: string;
  /** Upstream's option for another port of this machine. */
  readonly proxyAdminPort?: string;
  /** A configuration, whose gateway is meant. Commands for which `-f` is something else ask no gateway then. */
  readonly file?: string;
}

const DEFAULT_PORT = 15_000;

/**
 * The admin server that the options select, else that of AGCTL_ADMIN, else that of the configuration in the working folder, else the
 * default one on this machine.
 *
 * @throws CommandError with exit name `usage` if the options select two, or if the address is invalid
 */
export const adminAddress = (options: AdminOptions, context: Context): AdminAddress => ({
  ...selected(options, context),
  warn: context.stderr,
});

function selected(options: AdminOptions, context: Context): AdminAddress {
  const { local, admin, proxyAdminPort, file } = options;
  const isLocal = local === true || proxyAdminPort !== undefined;
  const named = [admin !== undefined && '--admin', isLocal && '--local', file !== undefined && '-f'];
  const [first, second] = named.filter((name) => name !== false);
  if (second !== undefined)
    throw new CommandError(
      'usage',
      `${String(first)} and ${second} name two different gateways`,
      'use one of them',
    );
  if (admin !== undefined) return parseAddress(admin, '--admin');
  const fromEnvironment = context.env['AGCTL_ADMIN'] ?? '';
  if (first === undefined && fromEnvironment !== '') return parseAddress(fromEnvironment, 'AGCTL_ADMIN');
  const config = isLocal ? undefined : (file ?? (hasConfigFile(context) ? DEFAULT_CONFIG_FILE : undefined));
  const address =
    (config === undefined ? undefined : configuredAdmin(config, { isNamed: file !== undefined }, context)) ??
    localAddress(proxyAdminPort);
  const { stderr, cwd } = context;
  return {
    ...address,
    ...(config !== undefined && { meant: realPath(resolve(cwd, config)) }),
    ...(stderr.isTTY === true && { tell: stderr }),
  };
}

/**
 * The admin server of the gateway with this configuration, from which nothing is taken if no option names it and it cannot be read.
 * Undefined if it does not say.
 */
function configuredAdmin(
  file: string,
  { isNamed }: { readonly isNamed: boolean },
  context: Context,
): AdminAddress | undefined {
  try {
    const { env } = withFileBeside(context, file).context;
    const text =
      env['ADMIN_ADDR'] || configuredPart(file, ['config', 'adminAddr'], { env, cwd: context.cwd });
    if (text === undefined) return undefined;
    const listening = typeof text === 'string' ? parseListenAddress(text) : undefined;
    const fail = (why: string): CommandError =>
      new CommandError(
        'usage',
        `${file}: \`config.adminAddr\` is ${why}`,
        '--admin or --local select a gateway',
      );
    if (listening === undefined) throw fail('not an address');
    if (listening.kind === 'off') throw fail('`off`: its gateway has no admin server');
    return addressOf(listening);
  } catch (error) {
    if (!isNamed && error instanceof CommandError) return undefined;
    throw error;
  }
}

/** Where a server answers that listens there, on this machine if it is everywhere; undefined if nobody knows its port. */
export function addressOf(listening: ListenAddress): AdminAddress | undefined {
  if (listening.kind === 'off') return undefined;
  if (listening.kind === 'unix')
    return {
      ...plain('localhost', 80),
      shown: `unix:${escapeControls(listening.path)}`,
      socketPath: listening.path,
    };
  const { hosts, port } = listening;
  const [host = ''] = hosts;
  if (port === 0) return undefined;
  return plain(host === '::' || host === '0.0.0.0' ? '127.0.0.1' : host, port);
}

function localAddress(port: string | undefined): AdminAddress {
  const number = port === undefined ? DEFAULT_PORT : portNumber(port);
  if (number === undefined)
    throw new CommandError(
      'usage',
      `--proxy-admin-port ${escapeControls(port ?? '')} is not a port`,
      'expected a number from 1 to 65535',
    );
  return plain('127.0.0.1', number);
}

function plain(host: string, port: number): AdminAddress {
  const shown = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return { shown, isTls: false, host, port, prefix: '' };
}

/**
 * Parses `host:port`, `[v6]:port`, `:port`, `port`, `unix:/path`, or an http(s) URL. `source` names the option or
 * variable in errors.
 */
export function parseAddress(text: string, source: string): AdminAddress {
  if (text.startsWith('unix:')) {
    const socketPath = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
    if (socketPath !== '')
      return {
        shown: `unix:${escapeControls(socketPath)}`,
        isTls: false,
        host: 'localhost',
        port: 80,
        socketPath,
        prefix: '',
      };
  } else if (/^https?:\/\//i.test(text)) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url !== undefined && url.username === '' && url.password === '' && url.search === '')
      return ofUrl(url);
  } else {
    const [, v6, name, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([\w.-]*)):?(?<=:|^)(\d+)$/.exec(text) ?? [];
    const port = portNumber(digits ?? '');
    if (port !== undefined) return plain(v6 ?? (name || '127.0.0.1'), port);
  }
  throw new CommandError(
    'usage',
    `${source} ${escapeControls(JSON.stringify(text))} is not an address of an admin server`,
    'expected host:port, unix:/path, or http://host:port',
  );
}

function ofUrl(url: URL): AdminAddress {
  const isTls = url.protocol === 'https:';
  return {
    shown: `${url.protocol}//${url.host}${url.pathname.replace(/(?<!\/)\/+$/, '')}`,
    isTls,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
    prefix: url.pathname.replace(/(?<!\/)\/+$/, ''),
  };
}

/** A port number from 1 to 65535, or undefined. */
export function portNumber(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? port : undefined;
}
