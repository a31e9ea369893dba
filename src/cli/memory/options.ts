import { resolve } from 'node:path';
import type { CallerRules } from '../../adapter/caller.ts';
import { isNamespace, NAMESPACE_FORM } from '../../adapter/namespace.ts';
import { namespaceKeysFrom } from '../../adapter/namespace-keys.ts';
import type { ToolSet } from '../../adapter/tools/index.ts';
import { AppError } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { isLoopback } from '../../core/listen.ts';
import type { Log } from '../../core/log.ts';
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

/** The rules of `MEMORY_NAMESPACE_KEYS` and `MEMORY_NAMESPACES`. */
export function namespaceRulesFrom(context: Context, log: Log): Omit<CallerRules, 'key'> {
  const { env, cwd } = context;
  const file = env['MEMORY_NAMESPACE_KEYS'] || undefined;
  const mode = env['MEMORY_NAMESPACES'] || undefined;
  if (mode !== undefined && mode !== 'required')
    throw new CommandError('usage', 'MEMORY_NAMESPACES: expected `required`, or nothing');
  const others = ['MEMORY_API_KEY', 'MEMORY_ADAPTER_KEY'].flatMap((name) => keyFrom(context, name) ?? []);
  return {
    namespaceKeys:
      file === undefined ? undefined : usage(() => namespaceKeysFrom(resolve(cwd, file), others, log)),
    requiresNamespace: mode === 'required',
  };
}

/** The value of `--namespace`. */
export function namespaceFrom(option: string | undefined): string | undefined {
  if (option === undefined || isNamespace(option)) return option;
  throw new CommandError('usage', `--namespace: expected ${NAMESPACE_FORM}`);
}

/** Access rules for the port of the adapter's tools. */
export interface AdapterAccess {
  readonly rules: CallerRules;
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
  log: Log,
): AdapterAccess {
  const rules = { ...namespaceRulesFrom(context, log), key: keyFrom(context, 'MEMORY_ADAPTER_KEY') };
  const needsKey = rules.key !== undefined || rules.namespaceKeys !== undefined;
  if (needsKey || isLocalHost(host)) return { rules, warning: '' };
  if (allowUnauthenticated !== true) {
    throw new CommandError(
      'usage',
      `listening on ${host || 'all addresses'} requires a key: otherwise everyone who can reach it could read and write the memory`,
      'set MEMORY_ADAPTER_KEY, which callers send as bearer token, or MEMORY_NAMESPACE_KEYS; listen on 127.0.0.1; or, if only a gateway ' +
        'can reach the port, add --allow-unauthenticated',
    );
  }
  return {
    rules,
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

export function flag(value: string | undefined, name: string): boolean {
  if (value === undefined || value === '' || value === 'false' || value === '0') return false;
  if (value === 'true' || value === '1') return true;
  throw new CommandError('usage', `${name}: expected true or false`);
}

/** Runs `read`; its errors are errors of usage. */
function usage<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw asUsage(error);
  }
}

/** A wrong environment variable counts as wrong usage. */
export function asUsage(error: unknown): unknown {
  return error instanceof AppError ? new CommandError('usage', error.message) : error;
}
