import { CommandError } from '../../core/exit-codes.ts';
import { isLoopback } from '../../core/listen.ts';
import type { Context } from '../context.ts';

/** A port from an option or a variable; 0 takes any free one. */
export function portFrom(
  option: string | undefined,
  context: Context,
  variable: string,
  fallback: number,
  flag = '--port',
): number {
  const set = option ?? context.env[variable];
  if (set === undefined) return fallback;
  const port = Number(set);
  if (!/^\d{1,5}$/.test(set) || port > 65_535) {
    const name = option === undefined ? variable : flag;
    throw new CommandError(
      'usage',
      `${name} must be a port, 0 to 65535, and not ${JSON.stringify(set.slice(0, 20))}`,
    );
  }
  return port;
}

/** Host names in `MEMORY_ALLOWED_HOSTS`, separated by commas. */
export function allowedHostsFrom({ env }: Context): ReadonlySet<string> {
  const names = (env['MEMORY_ALLOWED_HOSTS'] ?? '').split(',').map((name) => name.trim().toLowerCase());
  return new Set(names.filter((name) => name !== ''));
}

/** The bearer token between adapter and backend; an empty variable is none. */
export function apiKeyFrom(context: Context): string | undefined {
  return keyFrom(context, 'MEMORY_API_KEY');
}

/** How the port of the adapter's tools may be used. */
export interface AdapterAccess {
  /** Bearer token that callers must present. */
  readonly key: string | undefined;
  /** A line for the banner where others than this machine's users need no key. */
  readonly warning: string;
}

/**
 * Who may call the adapter's tools at `host`. Beyond this machine that takes a key, or somebody who says that it does
 * not: the tools read and write the whole memory.
 *
 * @throws CommandError when neither is given
 */
export function adapterAccessFrom(
  host: string,
  allowUnauthenticated: boolean | undefined,
  context: Context,
): AdapterAccess {
  const key = keyFrom(context, 'MEMORY_ADAPTER_KEY');
  if (key !== undefined || isLocalHost(host)) return { key, warning: '' };
  if (allowUnauthenticated !== true) {
    throw new CommandError(
      'usage',
      `listening on ${host || 'all addresses'} needs a key: everybody who reaches it could read and write the memory`,
      'set MEMORY_ADAPTER_KEY, which callers send as bearer token; listen on 127.0.0.1; or, where only a gateway ' +
        'reaches the port, add --allow-unauthenticated',
    );
  }
  return {
    key,
    warning: '  warning   the mcp port asks its callers for no key: let only the gateway reach it\n\n',
  };
}

/** Whether only this machine reaches a `--host`. */
export function isLocalHost(host: string): boolean {
  return host === 'localhost' || isLoopback(host);
}

function keyFrom({ env }: Context, variable: string): string | undefined {
  const key = env[variable];
  if (key === undefined || key === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new CommandError('usage', `${variable} must be printable ASCII without spaces`);
}
