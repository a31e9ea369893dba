import type { Path } from '../../core/diagnostic.ts';
import { jsonIn } from '../../core/foreign.ts';
import { redactedText } from '../../server/config/redact.ts';
import { schemaAt } from '../../server/config/schema-at.ts';
import { readConfigFile, saveConfig, writeRefusal } from '../config-file.ts';
import { checkedJson, checkText, diagnosticsJson } from '../config-problems.ts';
import { defineEndpoint, parameter, sendJson, sendProblem, shows } from '../endpoint.ts';
import { withSecrets } from '../secret-masks.ts';

/**
 * The text of the active configuration without secrets, and the validator's report. POST `{"text", "hash"}` writes the
 * file, see `config-file.ts`.
 */
export const config = defineEndpoint({
  path: '/api/config',
  methods: { GET: shows('operator'), POST: { role: 'editor', audit: 'configuration.write' } },
  handle(request, reply, admin, call) {
    if (request.method === 'POST') return saveConfig(request, reply, admin, call);
    const { source, diagnostics } = admin.served();
    const redactor = admin.redactor();
    return sendJson(reply, {
      path: source.file,
      text: redactedText(source, redactor),
      ...diagnosticsJson(diagnostics, redactor),
    });
  },
});

/**
 * The configuration file as it is on disk, with the active configuration: `{path, text, loaded, problem, hash,
 * readOnly, watching}`. Secrets are replaced by placeholders, which `/api/config` and `/api/config/validate` accept.
 */
export const configFile = defineEndpoint({
  path: '/api/config/file',
  methods: { GET: shows('operator') },
  async handle(request, reply, admin, call) {
    const { text, loaded, problem, hash } = await readConfigFile(admin);
    const readOnly = writeRefusal(admin, request.raw.socket.localAddress, call);
    return sendJson(reply, {
      path: admin.configFile ?? admin.served().source.file,
      text: text ?? null,
      loaded: loaded ?? null,
      problem: problem ?? null,
      hash: hash ?? null,
      readOnly: readOnly ?? null,
      watching: admin.reloadState?.().isWatching === true,
    });
  },
});

/**
 * Validates the YAML text in the body like `agctl config validate`: opens no port, starts no process, sends nothing.
 * Placeholders of `/api/config/file` represent the secrets of the file. The status is 200 whatever is found.
 */
export const configValidate = defineEndpoint({
  path: '/api/config/validate',
  methods: { POST: shows('operator') },
  async handle(request, reply, admin) {
    const text = typeof request.body === 'string' ? request.body : '';
    const secrets = text.includes('<redacted:') ? (await readConfigFile(admin)).secrets : [];
    const full = withSecrets(text, secrets);
    const checked = await checkText(full.text, admin);
    return sendJson(reply, checkedJson(checked, admin, full.range));
  },
});

/** A path of the configuration is at most this deep; deeper ones are mistakes. */
const DEEPEST = 40;

/**
 * What may be written at a place of a configuration file: `path` is a JSON array of keys and indexes, such as
 * `["gateways","default","routes",0]`. For completion in editors.
 */
export const configSchemaHint = defineEndpoint({
  path: '/api/config/schema',
  methods: { GET: shows('viewer') },
  handle(request, reply) {
    const path = pathOf(parameter(request, 'path') ?? '[]');
    if (path === undefined)
      return sendProblem(
        reply,
        400,
        'path: expected a JSON array of keys and indexes, such as ["gateways","default"]',
      );
    return sendJson(reply, schemaAt(path));
  },
});

function pathOf(text: string): Path | undefined {
  const path = jsonIn(text);
  return isPath(path) ? path : undefined;
}

const isPath = (value: unknown): value is Path =>
  Array.isArray(value) &&
  value.length <= DEEPEST &&
  value.every((part) => typeof part === 'string' || Number.isSafeInteger(part));
