import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context } from '../context.ts';

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
  /** Where to say that the audit of the gateway lacks a change. */
  readonly warn?: Context['stderr'];
}

/** The options that select an admin server. */
export interface AdminOptions {
  readonly local?: boolean;
  readonly admin?: string;
  /** Upstream's option for another port of this machine. */
  readonly proxyAdminPort?: string;
}

const DEFAULT_PORT = 15_000;

/**
 * The admin server that the options select, else that of AGCTL_ADMIN, else the one on this machine.
 *
 * @throws CommandError with exit name `usage` if the options select two, or if the address is invalid
 */
export const adminAddress = (
  options: AdminOptions,
  context: Pick<Context, 'env' | 'stderr'>,
): AdminAddress => ({ ...selected(options, context), warn: context.stderr });

function selected(options: AdminOptions, { env, stderr }: Pick<Context, 'env' | 'stderr'>): AdminAddress {
  const { local, admin, proxyAdminPort } = options;
  if (admin !== undefined && (local || proxyAdminPort !== undefined))
    throw new CommandError('usage', '--admin and --local name two different gateways', 'use one of them');
  if (admin !== undefined) return parseAddress(admin, '--admin');
  const fromEnvironment = env['AGCTL_ADMIN'] ?? '';
  if (!local && proxyAdminPort === undefined && fromEnvironment !== '')
    return parseAddress(fromEnvironment, 'AGCTL_ADMIN');
  const address = localAddress(proxyAdminPort);
  return stderr.isTTY === true ? { ...address, tell: stderr } : address;
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
