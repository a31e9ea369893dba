import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { styleText } from 'node:util';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { counted } from '../../core/render/counted.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { planGateways } from '../../server/config/plan.ts';
import type { CheckContext, CheckOptions, CheckResult } from '../check/check.ts';
import { checkGroups } from '../check/groups.ts';
import { type Context, wantsColor } from '../context.ts';
import type { Run } from '../program.ts';

interface Options {
  readonly file: string;
  readonly output: string;
  readonly only?: string;
  readonly offline?: boolean;
  readonly tokenFile?: string;
  readonly probeRegistration?: boolean;
  readonly loginClient?: string;
  readonly loginUser?: string;
  readonly loginPasswordEnv?: string;
  readonly color: string;
}

export const run: Run<Options> = async (options, context) => {
  const { file } = options;
  const loaded = loadConfigText(readConfigFile(file), file, context.env);
  const checkContext: CheckContext = {
    file,
    loaded,
    config: loaded.config,
    gateways: loaded.config === undefined ? [] : planGateways(loaded.config).gateways,
    env: context.env,
    folder: file === '-' ? context.cwd : dirname(resolve(context.cwd, file)),
    options: checkOptions(options, context),
  };
  const groups = selectedGroups(options.only);
  // All at once, printed in order: a provider that does not answer holds up nothing else.
  const outcomes = await Promise.all(
    groups.map(async (group) => ({ group, results: await group.run(checkContext) })),
  );
  const all = outcomes.flatMap(({ results }) => results);
  const failed = all.filter(({ status }) => status === 'fail').length;
  if (options.output === 'json') {
    const checks = outcomes.flatMap(({ group, results }) =>
      results.map((result) => ({ group: group.name, ...result })),
    );
    context.stdout.write(`${JSON.stringify({ checks, summary: summaryOf(all) }, null, 2)}\n`);
  } else {
    const color = wantsColor(context.stdout, options.color, context.env);
    for (const { group, results } of outcomes) {
      context.stdout.write(
        `${group.title(checkContext)}\n${results.map((result) => resultLine(result, color)).join('')}`,
      );
    }
    const { fail, warn, ok, skip } = summaryOf(all);
    context.stdout.write(
      `\n${counted(fail, 'problem')}, ${counted(warn, 'warning')}, ${ok} ok, ${skip} skipped\n`,
    );
  }
  return failed > 0 ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
};

function selectedGroups(only: string | undefined): typeof checkGroups {
  if (only === undefined) return checkGroups;
  const wanted = only.split(',');
  const unknown = wanted.find((name) => !checkGroups.some((group) => group.name === name));
  if (unknown !== undefined)
    throw new CommandError(
      'usage',
      `unknown group of checks: ${unknown}`,
      `groups: ${checkGroups.map(({ name }) => name).join(', ')}`,
    );
  return checkGroups.filter(({ name }) => wanted.includes(name));
}

function checkOptions(options: Options, { env }: Context): CheckOptions {
  const { loginClient, loginUser, loginPasswordEnv } = options;
  if (loginUser !== undefined && (loginClient === undefined || loginPasswordEnv === undefined)) {
    throw new CommandError('usage', '--login-user needs --login-client and --login-password-env');
  }
  return {
    offline: options.offline === true,
    token: options.tokenFile === undefined ? undefined : readToken(options.tokenFile),
    probeRegistration: options.probeRegistration === true,
    login:
      loginUser === undefined || loginClient === undefined
        ? undefined
        : { client: loginClient, user: loginUser, password: env[loginPasswordEnv ?? ''] ?? '' },
  };
}

/** The token in a file, also where the whole header or its value was saved. Throws `CommandError` (usage) when it cannot be read. */
export function readToken(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
      .trim()
      .replace(/^(?:authorization:\s*)?bearer\s+/i, '');
  } catch (error) {
    throw new CommandError('usage', `cannot read the token file: ${messageOf(error)}`);
  }
}

type Summary = Record<CheckResult['status'], number>;

function summaryOf(results: readonly CheckResult[]): Summary {
  const summary: Summary = { ok: 0, warn: 0, fail: 0, skip: 0 };
  for (const { status } of results) summary[status] += 1;
  return summary;
}

const MARKS = { ok: ['✓', 'green'], warn: ['!', 'yellow'], fail: ['✗', 'red'], skip: ['–', 'gray'] } as const;

function resultLine({ status, message, fix }: CheckResult, color: boolean): string {
  const [mark, style] = MARKS[status];
  const shown = color ? styleText(style, mark, { validateStream: false }) : mark;
  return `  ${shown} ${escapeControls(message)}\n${fix === undefined ? '' : `      fix: ${escapeControls(fix)}\n`}`;
}
