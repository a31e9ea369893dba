import { findProblems } from '../../server/runtime/find-problems.ts';
import { type CheckContext, type CheckGroup, type CheckResult, check, fail, ok, warn } from './check.ts';

export const configuration: CheckGroup = {
  name: 'config',
  title: ({ file, envFile }) =>
    `configuration   ${file}${envFile === undefined ? '' : `, variables of ${envFile}`}`,
  run: (context) => [check('the configuration', problems(context))],
};

async function problems({ file, loaded, env, folder }: CheckContext): Promise<CheckResult[]> {
  // Notes are about what is valid and often meant: `config validate` has them.
  const found = await findProblems(loaded, { env, folder });
  const diagnostics = found.filter(({ severity }) => severity !== 'note');
  const results = diagnostics.map(({ severity, message, range, help }) => {
    const fix = help ?? `run agctl config validate -f ${file} to see the position`;
    const text = `line ${range.start.line}: ${message}`;
    return { ...(severity === 'error' ? fail(text, fix) : warn(text, fix)), range };
  });
  return results.some(({ status }) => status === 'fail') ? results : [ok('valid'), ...results];
}
