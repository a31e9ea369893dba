import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { messageOf } from '../core/errors.ts';
import { jsonIn, membersOf, textIn } from '../core/foreign.ts';
import { LIMITS } from '../core/limits.ts';
import { isLoopback } from '../core/listen.ts';
import { replaceFile } from '../core/replace-file.ts';
import { YamlSource } from '../core/yaml/source.ts';
import { needsRole } from '../server/admin-access/caller.ts';
import { redactorOf } from '../server/config/redact.ts';
import type { EndpointCall } from './call.ts';
import { checkedJson, checkText } from './config-problems.ts';
import { sendJson } from './endpoint.ts';
import { readOnlyRefusal } from './read-only.ts';
import { maskSecrets, withSecrets } from './secret-masks.ts';
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

function mask(bytes: Buffer, { served }: Admin, secrets: string[]): Omit<ConfigFile, 'loaded'> {
  const text = bytes.toString('utf8');
  const none = { text: undefined, hash: undefined, secrets };
  if (!Buffer.from(text).equals(bytes)) return { ...none, problem: 'the file is not UTF-8' };
  const { env } = served().runtime;
  const { source } = YamlSource.parse(text, served().source.file, env);
  // Without valid YAML, it is unknown which values are secrets.
  if (source.value === undefined)
    return { ...none, problem: 'the file on disk is not valid YAML any more: repair it with another editor' };
  const masked = maskSecrets(source, redactorOf(source, env), secrets);
  if (masked === undefined)
    return { ...none, problem: 'its secrets cannot be masked individually: edit it with another editor' };
  return { text: masked, problem: undefined, hash: hashOf(bytes), secrets };
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Why a page may not write the file; undefined if it may. `localAddress`: on which the request arrived, undefined for a unix socket.
 */
export function writeRefusal(
  admin: Admin,
  localAddress: string | undefined,
  call: Pick<EndpointCall, 'may' | 'caller'>,
): string | undefined {
  const readOnly = readOnlyRefusal(admin);
  if (readOnly !== undefined) return readOnly;
  const { configFile, isConfigWritable } = admin;
  if (configFile === undefined)
    return 'the configuration came from standard input: there is no file to write';
  if (isConfigWritable !== true)
    return 'pages may not write the configuration of this gateway: start it with `agctl serve --ui-write`';
  if (!call.may('editor')) return needsRole('writing the configuration', 'editor', call.caller);
  // Without users, any machine that can reach the admin server could write.
  if (admin.served().config.config.adminRoles !== undefined) return undefined;
  if (!admin.isUnixSocket && !isLoopback(localAddress ?? ''))
    return 'the configuration can be written from this machine only: use 127.0.0.1';
  return undefined;
}

const CHANGED = 'the file has changed since the page read it: load it again';

/**
 * Writes the configuration file: `{"text": the new text, "hash": of the file that it is based on}`. The text is written
 * unchanged, comments included, except that placeholders are replaced by the secrets of the file. Answers with status
 * 403 if pages may not write, 409 if the file has changed meanwhile, 422 if the text is not a valid configuration. A
 * gateway that watches its file loads it within a second.
 */
export async function saveConfig(
  request: FastifyRequest,
  reply: FastifyReply,
  admin: Admin,
  call: EndpointCall,
): Promise<FastifyReply> {
  call.changed({ target: admin.configFile ?? admin.served().source.file });
  const refuse = (status: number, message: string, more = {}): FastifyReply =>
    sendJson(reply.code(status), { error: { message }, ...more });
  const refusal = writeRefusal(admin, request.raw.socket.localAddress, call);
  if (refusal !== undefined) return refuse(403, refusal);
  const asked = readBody(request.body);
  if (asked === undefined) return refuse(400, 'expected a JSON object with the strings `text` and `hash`');
  const file = await readConfigFile(admin);
  if (file.hash !== asked.hash) return refuse(409, file.problem ?? CHANGED);
  const full = withSecrets(asked.text, file.secrets);
  if (full.unknown.length > 0)
    return refuse(422, `${full.unknown[0]} matches no secret of the file: write the value, or a variable`);
  const checked = await checkText(full.text, admin);
  if (checked.diagnostics.some(({ severity }) => severity === 'error'))
    return refuse(
      422,
      'this is not a valid configuration; nothing was written',
      checkedJson(checked, admin, full.range),
    );
  const bytes = Buffer.from(full.text);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `writeRefusal` refuses without a file
  const path = admin.configFile as string;
  if (!replaceFile(path, bytes, () => hashOf(readFileSync(path)) === asked.hash)) return refuse(409, CHANGED);
  const isWatched = admin.reloadState?.().isWatching === true;
  call.changed({
    before: asked.hash,
    after: hashOf(bytes),
    detail: isWatched ? 'it will be reloaded' : 'restart to apply it',
  });
  return sendJson(reply, {
    status: 'success',
    message: isWatched
      ? 'Configuration written successfully. The gateway reloads it now.'
      : 'Configuration written successfully. The gateway uses the previous configuration until it is restarted.',
    hash: hashOf(bytes),
  });
}

function readBody(body: unknown): { readonly text: string; readonly hash: string } | undefined {
  const { text, hash } = membersOf(jsonIn(textIn(body)));
  return typeof text === 'string' && typeof hash === 'string' ? { text, hash } : undefined;
}
