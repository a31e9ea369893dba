import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { counted } from '../../core/render/counted.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { planGateways } from '../../server/config/plan/plan-gateways.ts';
import type { CheckContext, CheckGroup, CheckOptions, CheckResult } from '../check/check.ts';
import { configuration } from '../check/configuration.ts';
import { checkGroups } from '../check/groups.ts';
import { gather, githubPrinter, type Started, textPrinter } from '../check/report.ts';
import { killChildrenOnSignals } from '../check/target-context.ts';
import { configFileOf } from '../config-file.ts';
import { type Context, type Run, wantsColor } from '../context.ts';
import { forConfig } from '../env-file.ts';
import { Progress } from '../progress.ts';

interface Options {
  readonly file?: string;
  readonly output: string;
  readonly only?: string;
  readonly offline?: boolean;
  readonly start?: boolean;
  readonly tools?: boolean;
  readonly contract?: string;
  readonly update?: boolean;
  readonly tokenFile?: string;
  readonly probeRegistration?: boolean;
  readonly loginClient?: string;
  readonly loginUser?: string;
  readonly loginPasswordEnv?: string;
  readonly color: string;
}

export const run: Run<Options> = async (options, given) => {
  const file = configFileOf(options.file, given);
  const context = forConfig(given, file);
  const loaded = loadConfigText(readConfigFile(file), file, context.env);
  const checkContext: CheckContext = {
    file,
    loaded,
    config: loaded.config,
    gateways: loaded.config === undefined ? [] : planGateways(loaded.config).gateways,
    env: context.env,
    envFile: context.envFile,
    folder: file === '-' ? context.cwd : dirname(resolve(context.cwd, file)),
    options: checkOptions(options, context),
  };
  const start = (groups: readonly CheckGroup[]): Started[] =>
    groups.flatMap((group) => {
      const title = group.title(checkContext);
      return group.run(checkContext).map((each) => ({ group: group.name, title, check: each }));
    });
  const isJson = options.output === 'json';
  const write = (text: string): void => void context.stdout.write(text);
  const color = wantsColor(context.stdout, options.color, context.env);
  const print =
    options.output === 'text'
      ? textPrinter(context, color)
      : options.output === 'github'
        ? githubPrinter(file, context)
        : () => undefined;
  const progress = new Progress(context);
  const selected = await gather(start(selectedGroups(options)), progress, print);
  const isExplained = summaryOf(selected.flatMap(({ results }) => results)).fail > 0;
  // Otherwise `--only` would skip everything and exit with 0.
  const more =
    loaded.config === undefined && !isExplained ? await gather(start([configuration]), progress, print) : [];
  const outcomes = [...selected, ...more];
  const summary = summaryOf(outcomes.flatMap(({ results }) => results));
  const { fail, warn, ok, skip } = summary;
  if (isJson) {
    const checks = outcomes.flatMap(({ group, results }) => results.map((result) => ({ group, ...result })));
    write(`${JSON.stringify({ checks, summary }, null, 2)}\n`);
  } else {
    write(
      `${options.output === 'text' ? '\n' : ''}${counted(fail, 'problem')}, ${counted(warn, 'warning')}, ${ok} ok, ${skip} skipped\n`,
    );
  }
  return fail > 0 ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
};

function selectedGroups({ only, tools, contract }: Options): typeof checkGroups {
  if (only === undefined && tools !== true && contract === undefined) return checkGroups;
  const wanted = [
    ...(only?.split(',') ?? []),
    ...(tools === true ? ['tools'] : []),
    ...(contract === undefined ? [] : ['contract']),
  ];
  if (contract === undefined && wanted.includes('contract'))
    throw new CommandError(
      'usage',
      '--only contract requires --contract',
      'name the file: --contract tools.lock.yaml',
    );
  const unknown = wanted.find((name) => !checkGroups.some((group) => group.name === name));
  if (unknown !== undefined)
    throw new CommandError(
      'usage',
      `unknown group of checks: ${unknown}`,
      `groups: ${checkGroups.map(({ name }) => name).join(', ')}`,
    );
  return checkGroups.filter(({ name }) => wanted.includes(name));
}

function checkOptions(options: Options, { env, cwd }: Context): CheckOptions {
  const { loginClient, loginUser, loginPasswordEnv } = options;
  if (loginUser !== undefined && (loginClient === undefined || loginPasswordEnv === undefined)) {
    throw new CommandError('usage', '--login-user requires --login-client and --login-password-env');
  }
  const { contract, update = false } = options;
  if (update && contract === undefined)
    throw new CommandError(
      'usage',
      '--update requires --contract',
      'name the file: --contract tools.lock.yaml',
    );
  const starting = [
    ...(options.start === true ? ['--start'] : []),
    ...(options.tools === true ? ['--tools'] : []),
    ...(contract === undefined ? [] : ['--contract']),
  ];
  const start = starting.length > 0;
  if (start && options.offline === true)
    throw new CommandError(
      'usage',
      `${starting[0]} and --offline are mutually exclusive`,
      'a started server may use the network, and agctl cannot prevent that',
    );
  if (start) killChildrenOnSignals();
  return {
    offline: options.offline === true,
    start,
    tools: options.tools === true || options.only?.split(',').includes('tools') === true,
    contract:
      contract === undefined
        ? undefined
        : { path: resolve(cwd, contract), shown: contract, isUpdated: update },
    token: options.tokenFile === undefined ? undefined : readToken(options.tokenFile),
    probeRegistration: options.probeRegistration === true,
    login:
      loginUser === undefined || loginClient === undefined
        ? undefined
        : { client: loginClient, user: loginUser, password: env[loginPasswordEnv ?? ''] ?? '' },
  };
}

/**
 * Reads the token from a file, which may also contain the whole Authorization header or its value.
 *
 * @throws CommandError with exit name `usage` when the file cannot be read
 */
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
