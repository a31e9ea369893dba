import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { checkedJson, checkText } from './check-config.ts';
import { hashOf, readConfigFile, writeRefusal } from './config-file.ts';
import { sendJson } from './endpoint.ts';
import { withSecrets } from './secret-masks.ts';
import type { Admin } from './sources.ts';

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
): Promise<FastifyReply> {
  const refuse = (status: number, message: string, more = {}): FastifyReply =>
    sendJson(reply.code(status), { error: { message }, ...more });
  const refusal = writeRefusal(admin, request.raw.socket.localAddress);
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
  if (!replaceFile(admin.configFile as string, bytes, asked.hash)) return refuse(409, CHANGED);
  const isWatched = admin.reloadState?.().isWatching === true;
  const how = isWatched ? 'it will be reloaded' : 'restart to apply it';
  admin.log.warn('admin', `the configuration file was written from a page; ${how}`, {
    file: admin.configFile,
  });
  return sendJson(reply, {
    status: 'success',
    message: isWatched
      ? 'Configuration written successfully. The gateway reloads it now.'
      : 'Configuration written successfully. The gateway uses the previous configuration until it is restarted.',
    hash: hashOf(bytes),
  });
}

/** Replaces the file atomically and keeps its mode. Returns false if the file has changed meanwhile. */
function replaceFile(path: string, bytes: Uint8Array, hash: string): boolean {
  // A symbolic link is kept; its target is replaced.
  const target = realpathSync(path);
  const { mode } = statSync(target);
  const temporary = join(dirname(target), `.agctl-${randomUUID()}.tmp`);
  const file = openSync(temporary, 'wx', 0o600);
  try {
    try {
      fchmodSync(file, mode & 0o7777);
      let written = 0;
      while (written < bytes.length) written += writeSync(file, bytes, written);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    // Synchronous, so nothing in this process runs between this check and the next line.
    if (hashOf(readFileSync(target)) === hash) {
      renameSync(temporary, target);
      return true;
    }
    unlinkSync(temporary);
    return false;
  } catch (error) {
    unlinkSync(temporary);
    throw error;
  }
}

function readBody(body: unknown): { readonly text: string; readonly hash: string } | undefined {
  try {
    const value = JSON.parse(typeof body === 'string' ? body : '') as {
      text?: unknown;
      hash?: unknown;
    } | null;
    return typeof value?.text === 'string' && typeof value.hash === 'string'
      ? { text: value.text, hash: value.hash }
      : undefined;
  } catch {
    return undefined;
  }
}
