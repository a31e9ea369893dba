import { isUtf8 } from 'node:buffer';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import type { Context } from '../context.ts';
import { type AdminOptions, adminAddress } from './address.ts';
import { ask, notAnAdmin } from './admin-client.ts';
import { answered } from './answered.ts';
import { indentJson } from './json-text.ts';
import { print } from './print.ts';

/** Options of commands that display one endpoint's response. */
export interface ShowOptions extends AdminOptions {
  readonly output: 'text' | 'json' | 'yaml';
}

/**
 * Prints the JSON object of an endpoint, by default of the gateway on this machine: unchanged, as YAML, or as text.
 *
 * @param textOf Undefined if the endpoint of a gateway would send something else.
 */
export async function showJson(
  path: string,
  textOf: (members: Readonly<Record<string, unknown>>) => string | undefined,
  options: ShowOptions,
  context: Context,
): Promise<number> {
  const address = adminAddress(options, context);
  const { body } = await ask(address, { method: 'GET', path });
  const text = isUtf8(body) ? body.toString('utf8') : '';
  const value = answered(address, text, path);
  const shown = textOf(value);
  if (shown === undefined) throw notAnAdmin(address.shown, `its ${path} has other contents`);
  if (options.output === 'json') await print(context.stdout, indentJson(text));
  else if (options.output === 'yaml') {
    const { yamlOf } = await import('./yaml-text.ts');
    await print(context.stdout, yamlOf(value));
  } else await print(context.stdout, [shown]);
  return EXIT_CODES.ok.code;
}
