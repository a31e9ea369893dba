import { dirname, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { createLog, escapeControls } from '../../core/log.ts';
import { CelEvaluationError, compileExpression } from '../../server/cel/expression.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { planGateways, type RoutePlan } from '../../server/config/plan.ts';
import { createValidator } from '../../server/policies/mcp-authentication/index.ts';
import { TokenError } from '../../server/policies/mcp-authentication/jwt.ts';
import { PLACES } from '../../server/variables.ts';
import { tokenFix } from '../check/identity-provider.ts';
import type { Run } from '../program.ts';
import { readToken } from './check.ts';

interface Options {
  readonly file: string;
  readonly tokenFile: string;
  readonly output: string;
}

/** What one route would do with the token, and why. */
interface Verdict {
  readonly gateway: string;
  readonly route: string;
  readonly accepted: boolean;
  readonly status: number;
  readonly reason: string;
  readonly fix?: string;
  readonly rules: readonly { readonly rule: string; readonly result: string }[];
}

export const run: Run<Options> = async ({ file, tokenFile, output }, { env, cwd, stdout }) => {
  const { config } = loadConfigText(readConfigFile(file), file, env);
  if (config === undefined)
    throw new CommandError(
      'not_ok',
      `${file} is not a valid configuration`,
      `agctl config validate -f ${file}`,
    );
  const token = readToken(tokenFile);
  const folder = dirname(resolve(cwd, file));
  const verdicts: Verdict[] = [];
  for (const { name, routes } of planGateways(config).gateways) {
    for (const route of routes)
      if (route.config.policies?.mcpAuthentication !== undefined)
        verdicts.push(await explainRoute(name, route, token, folder));
  }
  if (verdicts.length === 0)
    throw new CommandError('not_ok', 'no route has mcpAuthentication', 'add the policy to a route');
  if (output === 'json') stdout.write(`${JSON.stringify({ verdicts }, null, 2)}\n`);
  else for (const verdict of verdicts) stdout.write(textOf(verdict));
  return verdicts.every(({ accepted }) => accepted) ? EXIT_CODES.ok.code : EXIT_CODES.not_ok.code;
};

async function explainRoute(
  gateway: string,
  { name, config }: RoutePlan,
  token: string,
  folder: string,
): Promise<Verdict> {
  const policy = config.policies?.mcpAuthentication;
  const base = { gateway, route: name };
  if (policy === undefined) throw new Error('unreachable: the route has the policy');
  const log = createLog(
    { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
    'error',
    'text',
  );
  const { validator, close } = createValidator(policy, folder, log);
  try {
    const jwt = await validator.validate(token);
    const rules = (config.policies?.authorization?.rules ?? []).map((rule) =>
      evaluateRule(typeof rule === 'string' ? rule : (Object.values(rule)[0] as string), jwt),
    );
    const failing = rules.find(({ result }) => result !== 'true' && result !== UNKNOWN);
    return failing === undefined
      ? { ...base, accepted: true, status: 200, reason: 'the token is valid and no rule on it fails', rules }
      : {
          ...base,
          accepted: false,
          status: 403,
          reason: `the token is valid, but a rule does not hold: ${failing.rule}`,
          rules,
        };
  } catch (error) {
    if (error instanceof TokenError) {
      const fix = tokenFix(error.message, policy.audiences);
      return {
        ...base,
        accepted: policy.mode === 'permissive',
        status: policy.mode === 'permissive' ? 200 : 401,
        reason: error.message,
        fix,
        rules: [],
      };
    }
    return {
      ...base,
      accepted: false,
      status: 503,
      reason: `the keys are not available: ${messageOf(error)}`,
      rules: [],
    };
  } finally {
    await close();
  }
}

const UNKNOWN = 'depends on the request';

/** Rules that read only the token have a value; the others need a request. */
function evaluateRule(rule: string, jwt: unknown): { rule: string; result: string } {
  const expression = compileExpression(rule, PLACES.request);
  if ([...expression.roots].some((root) => root !== 'jwt')) return { rule, result: UNKNOWN };
  try {
    return { rule, result: JSON.stringify(expression.evaluate(() => jwt)) };
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error;
    return { rule, result: `fails: ${error.message}` };
  }
}

function textOf({ gateway, route, accepted, status, reason, fix, rules }: Verdict): string {
  const lines = [`${accepted ? '✓' : '✗'} ${gateway} ${route}   ${status}   ${reason}`];
  if (fix !== undefined) lines.push(`    fix: ${fix}`);
  for (const { rule, result } of rules) lines.push(`    ${result.padEnd(8)} ${rule}`);
  return `${escapeControls(lines.join('\u0000')).replaceAll('\\u{0}', '\n')}\n`;
}
