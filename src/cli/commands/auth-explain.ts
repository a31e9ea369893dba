import { dirname, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { elementsOf, isRecord, membersOf, textIn } from '../../core/foreign.ts';
import { escapeControls, SILENT_LOG } from '../../core/log.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { answeringRoutes, policyOf, type RoutePlan, settingsOf } from '../../server/config/plan/plan.ts';
import { describeBackendAuth } from '../../server/credentials/backend-auth.ts';
import { hasRules } from '../../server/expressions/rules.ts';
import { requestScope } from '../../server/expressions/scopes.ts';
import { anyPolicyKinds } from '../../server/features.ts';
import type { Policy } from '../../server/kernel/request/request-context.ts';
import { mcpAuthorization } from '../../server/mcp/authorization-policy.ts';
import { mcpAuthorizationScope } from '../../server/mcp/variables.ts';
import { TokenError } from '../../server/policies/jwt/jwt-precheck.ts';
import {
  type McpAuthenticationConfig,
  mcpAuthentication,
} from '../../server/policies/mcp-authentication/index.ts';
import { routesBelow } from '../../server/runtime/callers/tool-callers.ts';
import { compileRuntime } from '../../server/runtime/runtime.ts';
import { DocumentClient } from '../../server/transport/upstream/document-client.ts';
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
interface Verdict extends Judgment {
  readonly gateway: string;
  /** Several listeners of a gateway may have the same route of a group. */
  readonly listener: string;
  readonly route: string;
  /** Whether one of its policies, or of its listener, validates tokens: the exit code is that of those. */
  readonly takesTokens: boolean;
  /** What MCP servers get instead of the token, by target. Others get what the route sends. */
  readonly credentials: Readonly<Record<string, string>>;
}

interface Judgment {
  readonly accepted: boolean;
  readonly status: number;
  readonly reason: string;
  readonly fix?: string;
  /** What the policies of the listener, then those of the route do that may refuse callers, in their order up to one that does. */
  readonly policies: readonly { readonly policy: string; readonly does: string }[];
  /** Rules of `authorization`, then those of `mcpAuthorization`. */
  readonly rules: readonly ExplainedRule[];
  readonly items: readonly ExplainedRule[];
}

export const run: Run<Options> = async ({ file: named, tokenFile, output }, context) => {
  const file = configFileOf(named, context);
  const { env, cwd, stdout } = forConfig(context, file);
  const { config, source } = loadConfigText(readConfigFile(file), file, env);
  const invalid = new CommandError(
    'not_ok',
    `${file} is not a valid configuration`,
    `run agctl config validate -f ${file}`,
  );
  if (config === undefined) throw invalid;
  const token = readToken(tokenFile);
  const folder = file === '-' ? cwd : dirname(resolve(cwd, file));
  const { runtime, diagnostics } = compileRuntime({ config, source, env, folder, log: SILENT_LOG });
  const verdicts: Verdict[] = [];
  try {
    if (diagnostics.some(({ severity }) => severity === 'error')) throw invalid;
    for (const { plan, listeners } of runtime.gateways)
      for (const [index, listener] of listeners.entries()) {
        const routes = answeringRoutes(plan.listeners[index]?.routes ?? []);
        const planned = new Map(routes.map((route) => [route.fullKey, route]));
        for (const route of routesBelow(listener.routes)) {
          const known = planned.get(route.fullKey);
          if (known === undefined) continue;
          // A route that also delegates is listed with those that it delegates to.
          planned.delete(route.fullKey);
          const policies = [...listener.policies, ...route.policies];
          verdicts.push({
            gateway: plan.name,
            listener: listener.name,
            route: route.name,
            takesTokens: policies.some(({ identifies }) => identifies?.claimsOf !== undefined),
            ...(await explainRoute(policies, known, token)),
            credentials: credentialsOf(known),
          });
        }
      }
  } finally {
    await runtime.close();
  }
  const asked = verdicts.filter(({ takesTokens }) => takesTokens);
  if (asked.length === 0)
    throw new CommandError(
      'not_ok',
      'no route validates tokens',
      'add the policy `mcpAuthentication` or `jwtAuth` to a route',
    );
  if (output === 'json') stdout.write(`${JSON.stringify({ verdicts }, null, 2)}\n`);
  else for (const verdict of verdicts) stdout.write(textOf(verdict));
  return asked.every(({ accepted }) => accepted) ? EXIT_CODES.ok.code : EXIT_CODES.not_ok.code;
};

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

/** What one policy does with the token. */
interface Step {
  readonly does: string;
  /** Of a valid token. */
  readonly claims?: unknown;
  /** Why and how it refuses the request. */
  readonly refusal?: { readonly status: number; readonly reason: string };
  readonly fix?: string;
}

async function explainRoute(policies: readonly Policy[], plan: RoutePlan, token: string): Promise<Judgment> {
  const known: { policy: string; does: string }[] = [];
  const base = { policies: known, rules: [], items: [] };
  let claims: unknown = null;
  let reason = 'no policy reads the token';
  let fix: string | undefined;
  for (const policy of policies) {
    const step = await stepOf(policy, plan, token);
    if (step === undefined) continue;
    known.push({ policy: policy.key, does: step.does });
    if (step.refusal !== undefined)
      return { ...base, accepted: false, ...step.refusal, ...(step.fix !== undefined && { fix: step.fix }) };
    if (policy.identifies?.claimsOf === undefined) continue;
    claims = step.claims ?? claims;
    reason = step.does;
    fix = step.fix;
  }
  return { ...base, ...judge(policies, claims, reason), ...(fix !== undefined && { fix }) };
}

/** Undefined if the policy refuses nobody, or by rules. */
async function stepOf(policy: Policy, plan: RoutePlan, token: string): Promise<Step | undefined> {
  const { key, identifies } = policy;
  const kind = anyPolicyKinds.find((each) => each.key === key);
  if (kind?.refusesBy !== undefined) return { does: `${kind.refusesBy} decides` };
  if (hasRules(policy) || kind?.restrictsClients !== true) return undefined;
  if (identifies === undefined) return { does: 'the request decides which of its settings apply' };
  const { claimsOf, ignoresInvalid, isRequired, takes } = identifies;
  if (claimsOf === undefined) {
    if (!isRequired) return { does: `takes ${takes}, and lets requests without it through` };
    const does = `asks for ${takes}`;
    return { does, refusal: { status: 401, reason: `${key} ${does}, which the token is not` } };
  }
  try {
    return { does: 'the token is valid', claims: await claimsOf(token) };
  } catch (error) {
    const invalid = error instanceof TokenError;
    const does = invalid ? error.message : `the keys are not available: ${messageOf(error)}`;
    const fix = await fixFor(error, settingsOf(policyOf(plan.policies, key), mcpAuthentication));
    if (ignoresInvalid === true) return { does, fix };
    return { does, fix, refusal: { status: invalid ? 401 : 503, reason: does } };
  }
}

/** `policy`: settings for MCP, which know more of the provider. */
async function fixFor(error: unknown, policy: McpAuthenticationConfig | undefined): Promise<string> {
  if (error instanceof TokenError) return tokenFix(error.message, policy);
  if (policy === undefined) return 'set `jwks`, or check that the metadata of `issuer` has a `jwks_uri`';
  const client = new DocumentClient();
  try {
    return keysFix(policy, await readMetadata(policy, client));
  } finally {
    await client.close();
  }
}

/** Evaluates the rules of the listener and the route. `claims`: null without a valid token. */
function judge(
  policies: readonly Policy[],
  claims: unknown,
  reason: string,
): Omit<Judgment, 'policies' | 'fix'> {
  const ruled = policies.filter(hasRules);
  const ofItems = ruled.filter(({ key }) => key === mcpAuthorization.key).flatMap(({ rules }) => rules.rules);
  const requests = ruled
    .filter(({ key }) => key !== mcpAuthorization.key)
    .map(({ rules }) => explainRules(rules.rules, requestScope, claims));
  const items = explainRules(ofItems, mcpAuthorizationScope, claims);
  const known = { rules: requests.flatMap(({ rules }) => rules), items: items.rules };
  const refusal = requests.find((each) => each.refusal !== undefined)?.refusal;
  if (refusal !== undefined)
    return { accepted: false, status: 403, reason: `${reason}, but ${refusal}`, ...known };
  if (items.refusal !== undefined)
    return {
      accepted: false,
      status: 200,
      reason: `${reason}, but every tool, prompt and resource is hidden: ${items.refusal}`,
      ...known,
    };
  const rules =
    known.rules.length + known.items.length === 0 && claims === null
      ? ''
      : ', and no rule that reads only the token fails';
  return { accepted: true, status: 200, reason: reason + rules, ...known };
}

function textOf({
  gateway,
  listener,
  route,
  accepted,
  status,
  reason,
  fix,
  policies,
  rules,
  items,
  credentials,
}: Verdict): string {
  const lines = [
    `${accepted ? '✓' : '✗'} ${listener === gateway ? gateway : `${gateway} ${listener}`} ${route}   ${status}   ${reason}`,
  ];
  if (fix !== undefined) lines.push(`    fix: ${fix}`);
  // The line above says what the only one does.
  if (policies.length > 1) lines.push('    policies:');
  if (policies.length > 1) for (const { policy, does } of policies) lines.push(`      ${policy}   ${does}`);
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
