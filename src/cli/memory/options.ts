import { CommandError } from '../../core/exit-codes.ts';
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
export function apiKeyFrom({ env }: Context): string | undefined {
  const key = env['MEMORY_API_KEY'];
  if (key === undefined || key === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new CommandError('usage', 'MEMORY_API_KEY must be printable ASCII without spaces');
}
