import { dirname, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { elementsOf, isRecord, membersOf, textIn } from '../../core/foreign.ts';
import { createLog, escapeControls } from '../../core/log.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { policyOf, type RoutePlan, routesOf } from '../../server/config/plan/plan.ts';
import { planGateways } from '../../server/config/plan/plan-gateways.ts';
import { describeBackendAuth } from '../../server/credentials/backend-auth.ts';
import { requestScope } from '../../server/expressions/scopes.ts';
import { mcpAuthorizationScope } from '../../server/mcp/variables.ts';
import { TokenError } from '../../server/policies/jwt/jwt-precheck.ts';
import { createValidator } from '../../server/policies/mcp-authentication/index.ts';
import { keysFix, readMetadata } from '../check/identity-provider.ts';
import { tokenFix } from '../check/token-fix.ts';
import { configFileOf } from '../config-file.ts';
import type { Run } from '../context.ts';
import { forConfig } from '../env-file.ts';
import { type ExplainedRule, explainRules } from '../explained-rules.ts';
import { readToken } from './check.ts';

interface Options {
  readonly file?: string;
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
  /** Rules of `authorization`, then those of `mcpAuthorization`. */
  readonly rules: readonly ExplainedRule[];
  readonly items: readonly ExplainedRule[];
  /** What MCP servers get instead of the token, by target. Others get what the route sends. */
  readonly credentials: Readonly<Record<string, string>>;
}

export const run: Run<Options> = async ({ file: named, tokenFile, output }, context) => {
  const file = configFileOf(named, context);
  const { env, cwd, stdout } = forConfig(context, file);
  const { config } = loadConfigText(readConfigFile(file), file, env);
  if (config === undefined)
    throw new CommandError(
      'not_ok',
      `${file} is not a valid configuration`,
      `run agctl config validate -f ${file}`,
    );
  const token = readToken(tokenFile);
  const folder = file === '-' ? cwd : dirname(resolve(cwd, file));
  const verdicts: Verdict[] = [];
  for (const gateway of planGateways(config).gateways) {
    for (const route of routesOf(gateway)) {
      const policies = policiesOf(route);
      if (policies.mcpAuthentication !== undefined)
        verdicts.push({
          ...(await explainRoute(gateway.name, route.name, policies, token, folder)),
          credentials: credentialsOf(route),
        });
    }
  }
  if (verdicts.length === 0)
    throw new CommandError('not_ok', 'no route has mcpAuthentication', 'add the policy to a route');
  if (output === 'json') stdout.write(`${JSON.stringify({ verdicts }, null, 2)}\n`);
  else for (const verdict of verdicts) stdout.write(textOf(verdict));
  return verdicts.every(({ accepted }) => accepted) ? EXIT_CODES.ok.code : EXIT_CODES.not_ok.code;
};

type RoutePolicies = NonNullable<RoutePlan['config']['policies']>;

/** The credentials of the MCP servers of a route that have their own. */
function credentialsOf({ backends }: RoutePlan): Record<string, string> {
  const targets = backends.flatMap(({ config }) =>
    elementsOf(membersOf(membersOf(config)['mcp'])['targets']).map(membersOf),
  );
  return Object.fromEntries(
    targets.flatMap(({ name, policies }) => {
      const { backendAuth } = membersOf(policies);
      return isRecord(backendAuth) ? [[textIn(name), describeBackendAuth(backendAuth)] as const] : [];
    }),
  );
}

/** The policies that decide on tokens, wherever they are written. */
function policiesOf({ policies }: RoutePlan): RoutePolicies {
  const keys = ['mcpAuthentication', 'authorization', 'mcpAuthorization'];
  return Object.fromEntries(keys.map((key) => [key, policyOf(policies, key)?.config]));
}

async function explainRoute(
  gateway: string,
  route: string,
  policies: RoutePolicies,
  token: string,
  folder: string,
): Promise<Omit<Verdict, 'credentials'>> {
  const policy = policies.mcpAuthentication;
  const base = { gateway, route };
  if (policy === undefined) throw new Error('unreachable: the route has the policy');
  const log = createLog(
    { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
    'error',
    'text',
  );
  const { validator, client, close } = createValidator(policy, folder, log);
  try {
    const jwt = await validator.validate(token);
    return { ...base, ...judge(policies, jwt) };
  } catch (error) {
    if (error instanceof TokenError) {
      const fix = tokenFix(error.message, policy);
      return {
        ...base,
        accepted: policy.mode === 'permissive',
        status: policy.mode === 'permissive' ? 200 : 401,
        reason: error.message,
        fix,
        rules: [],
        items: [],
      };
    }
    return {
      ...base,
      accepted: false,
      status: 503,
      reason: `the keys are not available: ${messageOf(error)}`,
      fix: keysFix(policy, await readMetadata(policy, client)),
      rules: [],
      items: [],
    };
  } finally {
    await close();
  }
}

/** Evaluates the rules of the route for a valid token. */
function judge(policies: RoutePolicies, jwt: unknown): Omit<Verdict, 'gateway' | 'route' | 'credentials'> {
  const request = explainRules(policies.authorization?.rules ?? [], 'require', requestScope, jwt);
  const items = explainRules(policies.mcpAuthorization?.rules ?? [], 'allow', mcpAuthorizationScope, jwt);
  const known = { rules: request.rules, items: items.rules };
  if (request.refusal !== undefined)
    return { accepted: false, status: 403, reason: `the token is valid, but ${request.refusal}`, ...known };
  if (items.refusal !== undefined) {
    const reason = `the token is valid, but every tool, prompt and resource is hidden: ${items.refusal}`;
    return { accepted: false, status: 200, reason, ...known };
  }
  return {
    accepted: true,
    status: 200,
    reason: 'the token is valid, and no rule that reads only the token fails',
    ...known,
  };
}

function textOf({
  gateway,
  route,
  accepted,
  status,
  reason,
  fix,
  rules,
  items,
  credentials,
}: Verdict): string {
  const lines = [`${accepted ? '✓' : '✗'} ${gateway} ${route}   ${status}   ${reason}`];
  if (fix !== undefined) lines.push(`    fix: ${fix}`);
  const print = ({ effect, rule, result }: ExplainedRule): number =>
    lines.push(`      ${result.padEnd(8)} ${effect.padEnd(7)} ${rule}`);
  if (rules.length > 0) lines.push('    rules for requests (authorization):');
  for (const rule of rules) print(rule);
  if (items.length > 0) lines.push('    rules for tools, prompts and resources (mcpAuthorization):');
  for (const rule of items) print(rule);
  const own = Object.entries(credentials);
  if (own.length > 0)
    lines.push('    credentials of servers, instead of the token (policies.backendAuth of targets):');
  for (const [target, credential] of own) lines.push(`      ${target}   ${credential}`);
  return `${escapeControls(lines.join('\u0000')).replaceAll('\\u{0}', '\n')}\n`;
}
