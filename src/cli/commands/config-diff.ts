import { parse } from 'yaml';
import { REDACTED } from '../../core/credentials.ts';
import type { Path } from '../../core/diagnostic.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { jsonIn, membersOf } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import { counted } from '../../core/render/counted.ts';
import { secretPaths } from '../../core/schema/secrets.ts';
import { foundSecrets } from '../../server/config/found-secrets.ts';
import { readConfigFile } from '../../server/config/load.ts';
import { redactedText, redactorOf } from '../../server/config/redact.ts';
import { configSchema } from '../../server/config/schema.ts';
import { type Difference, differencesOf } from '../config-diff/differences.ts';
import { loadForReading } from '../connect/load-for-reading.ts';
import type { Context, Run } from '../context.ts';
import { forConfig } from '../env-file.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask } from '../proxy/admin-client.ts';

interface Options extends AdminOptions {
  readonly operands?: readonly string[];
  readonly output: 'text' | 'json';
}

/** The second operand that stands for a running gateway. */
const RUNNING = 'running';

/** One side: its value, and the values in it that must not be shown. */
interface Side {
  readonly name: string;
  readonly value: unknown;
  /** Replaces secrets in a value at a path. */
  shown(value: unknown, path: Path): unknown;
}

export const run: Run<Options> = async (options, context) => {
  const [file, other = RUNNING] = options.operands ?? [];
  if (file === undefined)
    throw new CommandError('usage', 'which file?', 'agctl config diff gateway.yaml running');
  const isRunning = other === RUNNING;
  // Against a gateway, the file is what a reload would make active: the newer one.
  const [before, after] = isRunning
    ? [await runningSide(options, context), fileSide(file, context, true)]
    : [fileSide(file, context), fileSide(other, context)];
  const found = differencesOf(before.value, after.value, configSchema);
  if (options.output === 'json')
    context.stdout.write(
      `${JSON.stringify(
        found.map((each) => entry(each, before, after)),
        null,
        2,
      )}\n`,
    );
  else for (const each of found) context.stdout.write(`${line(entry(each, before, after))}\n`);
  const note = isRunning ? '; secrets cannot be compared with a running gateway' : '';
  context.stderr.write(
    `${before.name} and ${after.name}: ${found.length === 0 ? 'no difference' : counted(found.length, 'difference')}${note}\n`,
  );
  return found.length === 0 ? EXIT_CODES.ok.code : EXIT_CODES.not_ok.code;
};

/** A file. `withoutSecrets`: they are replaced like those of a running gateway. */
function fileSide(file: string, context: Context, withoutSecrets = false): Side {
  const { env } = forConfig(context, file);
  const { source } = loadForReading(readConfigFile(file), file, env).loaded;
  const redactor = redactorOf(source, env);
  const value = parsed(withoutSecrets ? redactedText(source, redactor) : source.text, file);
  const paths = [...secretPaths(configSchema, value), ...foundSecrets(source, env).map(({ path }) => path)];
  const secrets = new Set(paths.map((path) => JSON.stringify(path)));
  const shown = (part: unknown, path: Path): unknown => {
    if (isReference(part)) return part;
    if (path.some((_, index) => secrets.has(JSON.stringify(path.slice(0, index + 1))))) return REDACTED;
    if (Array.isArray(part)) return part.map((each, index) => shown(each, [...path, index]));
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([key, each]) => [key, shown(each, [...path, key])]));
  };
  return { name: file, value, shown: (part, path) => redactor.value(shown(part, path)) };
}

const isReference = (value: unknown): boolean =>
  typeof value === 'string' && /^\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})$/.test(value);

/** The active configuration of a gateway, which sends no secrets. */
async function runningSide(options: Options, context: Context): Promise<Side> {
  const address = adminAddress(options, context);
  const { body } = await ask(address, { method: 'GET', path: '/api/config' });
  const { text } = membersOf(jsonIn(body.toString('utf8')));
  if (typeof text !== 'string')
    throw new CommandError(
      'unreachable',
      `${address.shown} did not send its configuration`,
      'is it an agctl gateway of this version?',
    );
  return {
    name: `the gateway at ${address.shown}`,
    value: parsed(text, address.shown),
    shown: (value) => value,
  };
}

/** Variables are compared by name: their values may differ between this shell and the gateway. */
function parsed(text: string, name: string): unknown {
  try {
    return parse(text, { uniqueKeys: false, maxAliasCount: 1000 }) as unknown;
  } catch {
    throw new CommandError('not_ok', `${name} is not valid YAML`, 'agctl config validate reports where');
  }
}

interface Entry {
  readonly kind: Difference['kind'];
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

function entry({ kind, path, afterPath, shown, before, after }: Difference, older: Side, newer: Side): Entry {
  return {
    kind,
    path: shown,
    ...(before === undefined ? {} : { before: older.shown(before, path) }),
    ...(after === undefined ? {} : { after: newer.shown(after, afterPath) }),
  };
}

const SIGN = { added: '+', removed: '-', changed: '~', moved: '~' } as const;

function line({ kind, path, before, after }: Entry): string {
  const text = (value: unknown): string => escapeControls(JSON.stringify(value));
  const name = `${SIGN[kind]} ${escapeControls(path)}`;
  if (kind === 'added') return `${name}: ${text(after)}`;
  if (kind === 'removed') return `${name}: ${text(before)}`;
  if (kind === 'moved') return `${name}: order ${text(before)} -> ${text(after)}`;
  return `${name}: ${text(before)} -> ${text(after)}`;
}
