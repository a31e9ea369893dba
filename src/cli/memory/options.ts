import type { ToolSet } from '../../adapter/tools/index.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { isLoopback } from '../../core/listen.ts';
import type { Context } from '../context.ts';

/** A port from an option or variable; 0 selects any free port. */
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
      `${name} must be a port from 0 to 65535, not ${JSON.stringify(set.slice(0, 20))}`,
    );
  }
  return port;
}

/** Host names in `MEMORY_ALLOWED_HOSTS`, separated by commas. */
export function allowedHostsFrom({ env }: Context): ReadonlySet<string> {
  const names = (env['MEMORY_ALLOWED_HOSTS'] ?? '').split(',').map((name) => name.trim().toLowerCase());
  return new Set(names.filter((name) => name !== ''));
}

/** The bearer token between adapter and backend; an empty variable counts as unset. */
export function apiKeyFrom(context: Context): string | undefined {
  return keyFrom(context, 'MEMORY_API_KEY');
}

/** `MEMORY_TOOLS`: which tools the adapter offers. */
export function toolSetFrom({ env }: Context): ToolSet {
  const set = env['MEMORY_TOOLS'] || 'default';
  if (set === 'default' || set === 'extended') return set;
  throw new CommandError(
    'usage',
    `MEMORY_TOOLS must be default or extended, not ${JSON.stringify(set.slice(0, 20))}`,
  );
}

/** Access rules for the port of the adapter's tools. */
export interface AdapterAccess {
  /** Bearer token that callers must send. */
  readonly key: string | undefined;
  /** A line for the banner if callers on other machines need no key. */
  readonly warning: string;
}

/**
 * Access rules for the adapter's tools at `host`. Listening beyond this machine requires a key or
 * --allow-unauthenticated, because the tools read and write the whole memory.
 *
 * @throws CommandError if neither is given
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
      `listening on ${host || 'all addresses'} requires a key: otherwise everyone who can reach it could read and write the memory`,
      'set MEMORY_ADAPTER_KEY, which callers send as bearer token; listen on 127.0.0.1; or, if only a gateway ' +
        'can reach the port, add --allow-unauthenticated',
    );
  }
  return {
    key,
    warning: '  warning   the mcp port requires no key: make sure that only the gateway can reach it\n\n',
  };
}

/** Whether only this machine can reach a `--host`. */
export function isLocalHost(host: string): boolean {
  return host === 'localhost' || isLoopback(host);
}

function keyFrom({ env }: Context, variable: string): string | undefined {
  const key = env[variable];
  if (key === undefined || key === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new CommandError('usage', `${variable} must be printable ASCII without spaces`);
}
