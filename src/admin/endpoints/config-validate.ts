import { createLog } from '../../core/log.ts';
import { loadConfigText } from '../../server/config/load.ts';
import { redactorOf } from '../../server/config/redact.ts';
import { compileRuntime } from '../../server/runtime.ts';
import { diagnosticsJson } from '../diagnostics.ts';
import { defineEndpoint, sendJson } from '../endpoint.ts';

/**
 * Checks the YAML text in the body as `agctl config validate` does: opens no port, starts no process, sends nothing.
 * 200 whatever is found.
 */
export const configValidate = defineEndpoint({
  path: '/api/config/validate',
  methods: ['POST'],
  async handle(request, reply, { env, folder, served }) {
    const text = typeof request.body === 'string' ? request.body : '';
    const { config, source, diagnostics } = loadConfigText(text, served().source.file, env);
    const found = [...diagnostics];
    if (config !== undefined) {
      const compiled = compileRuntime({ config, source, log: silent, folder, env });
      await compiled.runtime.close();
      found.push(...compiled.diagnostics);
    }
    return sendJson(reply, diagnosticsJson(found, redactorOf(source, env)));
  },
});

const silent = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'off',
  'text',
);
