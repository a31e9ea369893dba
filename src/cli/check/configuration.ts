import { createLog } from '../../core/log.ts';
import { compileRuntime } from '../../server/runtime.ts';
import { type CheckGroup, fail, ok, warn } from './check.ts';

export const configuration: CheckGroup = {
  name: 'config',
  title: ({ file }) => `configuration   ${file}`,
  async run({ file, loaded, config, env, folder }) {
    const diagnostics = [...loaded.diagnostics];
    if (config !== undefined) {
      const silent = createLog(
        { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
        'error',
        'text',
      );
      const compiled = compileRuntime({ config, source: loaded.source, log: silent, folder, env });
      await compiled.runtime.close();
      diagnostics.push(...compiled.diagnostics);
    }
    const results = diagnostics.map(({ severity, message, range, help }) => {
      const fix = help ?? `agctl config validate -f ${file} shows the place`;
      const text = `line ${range.start.line}: ${message}`;
      return severity === 'error' ? fail(text, fix) : warn(text, fix);
    });
    return results.some(({ status }) => status === 'fail') ? results : [ok('valid'), ...results];
  },
};
