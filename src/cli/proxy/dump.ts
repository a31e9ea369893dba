import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { errorCode, isRecord, parseJson } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context } from '../context.ts';
import { type AdminOptions, adminAddress } from './address.ts';
import { ask, notAnAdmin } from './admin-client.ts';
import { NumberText } from './json-text.ts';

/** Options that select the source of a dump. */
export interface DumpOptions extends AdminOptions {
  readonly file?: string;
}

/** A configuration dump: its text, which is valid JSON, and its parsed value. */
export interface Dump {
  /** File or address, safe to print. */
  readonly source: string;
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/**
 * Loads the dump that the options select.
 *
 * @throws CommandError with exit name `usage` if a file cannot be read or contains no dump; see `ask` for a server
 */
export async function loadDump(options: DumpOptions, context: Context): Promise<Dump> {
  const { file } = options;
  if (file !== undefined) {
    if (options.local || options.admin !== undefined)
      throw new CommandError(
        'usage',
        '--file and --local or --admin name two different dumps',
        'use one of them',
      );
    const source = file === '-' ? 'standard input' : escapeControls(file);
    const fail = (why: string, help?: string): CommandError =>
      new CommandError('usage', `${source} ${why}`, help);
    return { source, ...parseDump(await readInput(file, context.cwd), fail, file) };
  }
  const address = adminAddress(options, context);
  const { body } = await ask(address, { method: 'GET', path: '/config_dump' });
  const fail = (why: string): CommandError => notAnAdmin(address.shown, `its /config_dump ${why}`);
  return { source: address.shown, ...parseDump(body, fail) };
}

/** Reads a file, or standard input for `-`, of at most `LIMITS.dumpBytes` bytes. */
export async function readInput(file: string, cwd: string): Promise<Buffer> {
  const shown = file === '-' ? 'standard input' : escapeControls(file);
  const tooLarge = (): CommandError =>
    new CommandError(
      'usage',
      `${shown} has more than ${LIMITS.dumpBytes / 1024 / 1024} MiB`,
      'use jq to extract a part of it',
    );
  try {
    if (file !== '-' && (await stat(resolve(cwd, file))).size > LIMITS.dumpBytes) throw tooLarge();
    const stream =
      file === '-' ? process.stdin : createReadStream(resolve(cwd, file), { highWaterMark: 1 << 20 });
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of stream as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > LIMITS.dumpBytes) throw tooLarge();
      parts.push(part);
    }
    return Buffer.concat(parts);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const code = errorCode(error);
    if (code === 'ENOENT') throw new CommandError('usage', `no such file: ${shown}`);
    if (code === 'EISDIR') throw new CommandError('usage', `${shown} is a directory`);
    if (code === 'EACCES') throw new CommandError('usage', `this user may not read ${shown}`);
    throw new CommandError('usage', `cannot read ${shown}: ${escapeControls(messageOf(error))}`);
  }
}

const MAKE_ONE = 'curl http://127.0.0.1:15000/config_dump prints a dump';

function parseDump(
  bytes: Buffer,
  fail: (why: string, help?: string) => CommandError,
  file?: string,
): Pick<Dump, 'text' | 'value'> {
  if (bytes.length === 0) throw fail('is empty', MAKE_ONE);
  if (!isUtf8(bytes)) throw fail('is not UTF-8 text', MAKE_ONE);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  let value: unknown;
  try {
    value = parseExactly(text);
  } catch (error) {
    if (/^(?:gateways|binds|llm|mcp|config|routes|frontendPolicies):/m.test(text.slice(0, 100_000)))
      throw fail(
        'is a gateway configuration, not a dump',
        `run agctl config validate -f ${escapeControls(file ?? '')}`,
      );
    throw fail(`is not JSON${place(text, messageOf(error))}`, MAKE_ONE);
  }
  if (!isRecord(value))
    throw fail(
      'is JSON, but not a dump: expected an object with binds, routes, policies and backends',
      MAKE_ONE,
    );
  const parts = ['binds', 'backends', 'services', 'config', 'policies', 'workloads'];
  if (!parts.some((part) => Object.hasOwn(value, part)))
    throw fail(`is JSON, but not a dump: it has none of ${parts.join(', ')}`, MAKE_ONE);
  return { text, value };
}

/**
 * Like `JSON.parse`, but numbers that a double cannot represent keep their digits. Slow only for dumps with such
 * numbers.
 */
function parseExactly(text: string): unknown {
  if (!/\d[\d.]{15}/.test(text)) return parseJson(text);
  return parseJson(text, (_, value, { source = '' }) =>
    typeof value === 'number' && String(value) !== source && source.length > 15
      ? new NumberText(source)
      : value,
  );
}

/** The position of a parser error, if known, as in `, line 3, column 8`. */
function place(text: string, message: string): string {
  const [, digits] = /at position (\d+)/.exec(message) ?? [];
  if (message.includes('nested deeper')) return `: ${message}`;
  if (digits === undefined) return /end of JSON/i.test(message) ? ': it ends unexpectedly' : '';
  const before = text.slice(0, Number(digits));
  const line = before.split('\n').length;
  return `: line ${line}, column ${before.length - before.lastIndexOf('\n')}`;
}
