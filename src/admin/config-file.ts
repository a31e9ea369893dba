import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { messageOf } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import { isLoopback } from '../core/listen.ts';
import { YamlSource } from '../core/yaml/source.ts';
import { redactorOf } from '../server/config/redact.ts';
import { maskSecrets } from './secret-masks.ts';
import type { Admin } from './sources.ts';

/** The configuration file in the form that a page may see. */
export interface ConfigFile {
  /** The text with placeholders for secrets; undefined if there is a `problem`. */
  readonly text: string | undefined;
  /** Why the file cannot be displayed. */
  readonly problem: string | undefined;
  /** The active configuration, with the same placeholders for the same secrets. */
  readonly loaded: string | undefined;
  /** SHA-256 of the bytes of the file, to detect later changes. */
  readonly hash: string | undefined;
  /** The secrets behind the placeholders. They never leave this process. */
  readonly secrets: readonly string[];
}

/** Reads the current configuration file. Never throws: an error becomes its `problem`. */
export async function readConfigFile(admin: Admin): Promise<ConfigFile> {
  const { source } = admin.served();
  const secrets: string[] = [];
  const none = { text: undefined, hash: undefined, secrets };
  const { configFile } = admin;
  const bytes =
    configFile === undefined
      ? undefined
      : await readFile(configFile).catch((error: unknown) => messageOf(error));
  let file: Omit<ConfigFile, 'loaded'>;
  if (bytes === undefined) file = { ...none, problem: 'the configuration came from standard input' };
  else if (typeof bytes === 'string') file = { ...none, problem: `the file cannot be read: ${bytes}` };
  else if (bytes.length > LIMITS.adminBody)
    file = { ...none, problem: 'the file is larger than the editor supports (1 MiB)' };
  else file = mask(bytes, admin, secrets);
  // After the file, so that the file's placeholders count from 1.
  return { ...file, loaded: maskSecrets(source, admin.redactor(), secrets) };
}

function mask(bytes: Buffer, { env, served }: Admin, secrets: string[]): Omit<ConfigFile, 'loaded'> {
  const text = bytes.toString('utf8');
  const none = { text: undefined, hash: undefined, secrets };
  if (!Buffer.from(text).equals(bytes)) return { ...none, problem: 'the file is not UTF-8' };
  const { source } = YamlSource.parse(text, served().source.file, env);
  // Without valid YAML, it is unknown which values are secrets.
  if (source.value === undefined)
    return { ...none, problem: 'the file on disk is not valid YAML any more: repair it with another editor' };
  const masked = maskSecrets(source, redactorOf(source, env), secrets);
  if (masked === undefined)
    return { ...none, problem: 'its secrets cannot be masked individually: edit it with another editor' };
  return { text: masked, problem: undefined, hash: hashOf(bytes), secrets };
}

export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Why a page may not write the file; undefined if it may. `localAddress` is the address on which the request arrived.
 */
export function writeRefusal(
  { configFile, isConfigWritable }: Admin,
  localAddress: string | undefined,
): string | undefined {
  if (configFile === undefined)
    return 'the configuration came from standard input: there is no file to write';
  if (isConfigWritable !== true)
    return 'pages may not write the configuration of this gateway: start it with `agctl serve --ui-write`';
  // The admin server has no users, so any machine that can reach it could write.
  if (localAddress !== undefined && !isLoopback(localAddress))
    return 'the configuration can be written from this machine only: use 127.0.0.1';
  return undefined;
}
