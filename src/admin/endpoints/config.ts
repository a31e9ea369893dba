import { redactedText } from '../../server/config/redact.ts';
import { saveConfig } from '../config-file.ts';
import { diagnosticsJson } from '../config-problems.ts';
import { defineEndpoint, sendJson } from '../endpoint.ts';

/**
 * The text of the active configuration without secrets, and the validator's report. POST `{"text", "hash"}` writes the
 * file, see `config-file.ts`.
 */
export const config = defineEndpoint({
  path: '/api/config',
  methods: ['GET', 'POST'],
  handle(request, reply, admin) {
    if (request.method === 'POST') return saveConfig(request, reply, admin);
    const { source, diagnostics } = admin.served();
    const redactor = admin.redactor();
    return sendJson(reply, {
      path: source.file,
      text: redactedText(source, redactor),
      ...diagnosticsJson(diagnostics, redactor),
    });
  },
});
