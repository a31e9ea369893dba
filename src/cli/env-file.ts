import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { messageOf } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import { escapeControls } from '../core/log.ts';
import { readNamedFile } from '../core/named-file.ts';
import { envFileName } from '../core/yaml/env.ts';
import type { VariablesFile } from '../server/runtime/reload/live-config.ts';
import type { Context } from './context.ts';

/**
 * Adds the variables of a file in the format of `node --env-file` to the environment of a command. As there, a variable
 * that is set already keeps its value.
 *
 * @throws CommandError with exit name `usage` if the file cannot be read
 */
export function withEnvFile(context: Context, file: string | undefined): Context {
  if (file === undefined) return context;
  const env = { ...parseEnv(readNamed(context, file)), ...context.env };
  return { ...context, env, envFile: file, environment: context.env };
}

const readNamed = ({ cwd }: Context, file: string): string =>
  readNamedFile(file, {
    cwd,
    maxBytes: LIMITS.envFileBytes,
    hint: '--env-from takes a file with lines such as NAME=value',
  });

/**
 * The file of variables that a reload of a configuration reads again: the one that `--env-from` names, or the one beside
 * the configuration, which may not exist yet. Undefined for a configuration from standard input without `--env-from`.
 *
 * @param given The context of the command, before `withFileBeside`
 */
export function variablesFile(given: Context, configFile: string): VariablesFile | undefined {
  const { environment = given.env, cwd, envFile } = given;
  if (envFile !== undefined)
    return {
      path: resolve(cwd, envFile),
      read: () => ({ ...parseEnv(readNamed(given, envFile)), ...environment }),
    };
  const beside = pathBeside(given, configFile);
  if (beside === undefined) return undefined;
  const { path, config, shown } = beside;
  return {
    path,
    read: () => {
      try {
        return { ...parseEnv(readBeside(path, config).text), ...environment };
      } catch (error) {
        if (isMissing(error)) return environment;
        throw new Error(`${shown} cannot be read: ${messageOf(error)}`);
      }
    },
  };
}

/** The context of a command with the variables for one configuration. */
interface ConfigContext {
  readonly context: Context;
  /** Why the file beside the configuration was not read, or what is wrong with it. */
  readonly warning?: string;
  /** Which variables of the file have no effect. Not a warning: that may be meant, such as on a server. */
  readonly note?: string;
}

/**
 * Adds the variables of the file beside a configuration, `gateway.env` beside `gateway.yaml`, unless `--env-from` names
 * another one (docs/decisions/0068). A file that cannot or must not be read is skipped, with a warning: the variables
 * may all be in the environment.
 */
export function withFileBeside(context: Context, configFile: string): ConfigContext {
  const beside = pathBeside(context, configFile);
  if (context.envFile !== undefined || beside === undefined) return { context };
  const { path, config, shown } = beside;
  try {
    const { text, isPublic } = readBeside(path, config);
    const written = parseEnv(text);
    const env = { ...written, ...context.env };
    const note = overridden(written, context.env, shown);
    return {
      context: { ...context, env, envFile: shown, environment: context.env },
      ...(isPublic && {
        warning: `every user of this machine can read the secrets in ${shown}: chmod 600 ${shown}`,
      }),
      ...(note !== undefined && { note }),
    };
  } catch (error) {
    if (isMissing(error)) return { context };
    return { context, warning: `${shown} is ignored: ${messageOf(error)}` };
  }
}

/** Names, never values: the variables of the shell are those of whatever was done in it before. */
function overridden(
  written: NodeJS.Dict<string>,
  environment: Context['env'],
  shown: string,
): string | undefined {
  const names = Object.keys(written).filter(
    (name) => environment[name] !== undefined && environment[name] !== written[name],
  );
  if (names.length === 0) return undefined;
  const list = names.map(escapeControls).join(', ');
  const what = `the environment has other values than ${shown}, and takes precedence: ${list}`;
  return `${what}; \`unset\` them to use those of the file, or remove them from it if this is meant`;
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';

/** The file of variables beside a configuration: its path, the configuration's, and how messages name it. */
function pathBeside(
  { cwd }: Context,
  configFile: string,
): { readonly path: string; readonly config: string; readonly shown: string } | undefined {
  const name = envFileName(configFile);
  if (name === undefined) return undefined;
  const config = resolve(cwd, configFile);
  const path = join(dirname(config), name);
  return { path, config, shown: escapeControls(relative(cwd, path)) };
}

/** `withFileBeside`, with warning and note on stderr. */
export function forConfig(context: Context, configFile: string): Context {
  const { context: extended, warning, note } = withFileBeside(context, configFile);
  if (warning !== undefined) context.stderr.write(`warning: ${warning}\n`);
  if (note !== undefined) context.stderr.write(`note: ${note}\n`);
  return extended;
}

function readBeside(path: string, config: string): { text: string; isPublic: boolean } {
  // A FIFO would block. Windows has none, and no such flag.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error('it is not a regular file');
    if (found.size > LIMITS.envFileBytes) throw new Error(`it is larger than ${LIMITS.envFileBytes} bytes`);
    const user = process.geteuid?.();
    // In a folder that several users write, such as /tmp, another one could set variables of this user's gateway.
    if (user !== undefined && !isTrusted(found, user, config))
      throw new Error(`it belongs to another user (uid ${found.uid}); --env-from ${path} reads it anyway`);
    return { text: readFileSync(file, 'utf8'), isPublic: user !== undefined && (found.mode & 0o004) !== 0 };
  } finally {
    closeSync(file);
  }
}

const ROOT = 0;

/** Whether the owner of the file decides about the gateway anyway: its user, root, or the owner of the configuration. */
const isTrusted = ({ uid }: Stats, user: number, config: string): boolean =>
  uid === user || uid === ROOT || uid === statSync(config).uid;
