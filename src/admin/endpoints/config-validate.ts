import { readConfigFile } from '../config-file.ts';
import { checkedJson, checkText } from '../config-problems.ts';
import { defineEndpoint, sendJson } from '../endpoint.ts';
import { withSecrets } from '../secret-masks.ts';

/**
 * Validates the YAML text in the body like `agctl config validate`: opens no port, starts no process, sends nothing.
 * Placeholders of `/api/config/file` represent the secrets of the file. The status is 200 whatever is found.
 */
export const configValidate = defineEndpoint({
  path: '/api/config/validate',
  methods: ['POST'],
  async handle(request, reply, admin) {
    const text = typeof request.body === 'string' ? request.body : '';
    const secrets = text.includes('<redacted:') ? (await readConfigFile(admin)).secrets : [];
    const full = withSecrets(text, secrets);
    const checked = await checkText(full.text, admin);
    return sendJson(reply, checkedJson(checked, admin, full.range));
  },
});
