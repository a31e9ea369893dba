import { readConfigFile, writeRefusal } from '../config-file.ts';
import { defineEndpoint, sendJson } from '../endpoint.ts';

/**
 * The configuration file as it is on disk, with the active configuration: `{path, text, loaded, problem, hash,
 * readOnly, watching}`. Secrets are replaced by placeholders, which `/api/config` and `/api/config/validate` accept.
 */
export const configFile = defineEndpoint({
  path: '/api/config/file',
  methods: ['GET'],
  async handle(request, reply, admin) {
    const { text, loaded, problem, hash } = await readConfigFile(admin);
    const readOnly = writeRefusal(admin, request.raw.socket.localAddress);
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
