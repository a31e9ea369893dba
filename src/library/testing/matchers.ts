import type { Reason } from '../../core/errors.ts';
import { entryIn, membersOf } from '../../core/foreign.ts';
import type { RequestFacts } from '../request-facts.ts';
import type { TestGateway } from './test-gateway.ts';

/** As `expect.extend` of vitest and Jest has it. */
export interface MatcherResult {
  readonly pass: boolean;
  message(): string;
}

/** Policies that refuse requests. Both kinds of rate limits have the same reason. */
export type DenyingPolicy =
  | 'apiKey'
  | 'authorization'
  | 'basicAuth'
  | 'extAuthz'
  | 'extProc'
  | 'guardrails'
  | 'jwtAuth'
  | 'modules'
  | 'oidc'
  | 'rateLimit'
  | 'timeout';

/** `reason` of the facts of requests that they have refused. */
const REASONS: Readonly<Record<DenyingPolicy, Reason>> = {
  apiKey: 'APIKeyAuth',
  authorization: 'Authorization',
  basicAuth: 'BasicAuth',
  extAuthz: 'ExtAuth',
  extProc: 'ExtProc',
  guardrails: 'Guardrail',
  jwtAuth: 'JwtAuth',
  modules: 'Policy',
  oidc: 'Oidc',
  rateLimit: 'RateLimit',
  timeout: 'Timeout',
};

/** Statements on a test gateway. Each first waits until its requests have ended, and rejects if `idle` does. */
export interface GatewayMatchers<Result> {
  /** A client called this tool, by its name at the server, and the call reached the server: no rule denied it. */
  toHaveCalledTool(tool: string, target?: string): Result;
  /**
   * A client tried to call this tool, by the name that the client used, and the call reached no server: `mcpAuthorization` denied
   * it. A call of a tool that no server has looks the same.
   */
  toHaveDeniedTool(tool: string): Result;
  /** The last request was refused by this policy. Calls of tools that `mcpAuthorization` denies are not refused requests. */
  toBeDeniedBy(policy: DenyingPolicy): Result;
  /** All requests together cost so many USD, give or take a millionth. Rejects if a model that was used has no price. */
  toHaveCost(usd: number): Result;
}

/** Statements on a test gateway without a test runner, and what they state the contrary of. */
export interface GatewayStatements extends GatewayMatchers<Promise<void>> {
  readonly not: GatewayMatchers<Promise<void>>;
}

type Check = (requests: readonly RequestFacts[]) => { readonly pass: boolean; readonly what: string };

const calledTool =
  (tool: string, target?: string): Check =>
  (requests) => ({
    pass: requests.some(
      (each) =>
        each.operation === 'tools/call' &&
        each.tool === tool &&
        each.target !== undefined &&
        (target === undefined || each.target === target),
    ),
    what: `a call of the tool ${target === undefined ? '' : `${target} / `}${tool}`,
  });

const deniedTool =
  (tool: string): Check =>
  (requests) => ({
    pass: requests.some(
      (each) => each.operation === 'tools/call' && each.tool === tool && each.target === undefined,
    ),
    what: `a call of the tool ${tool} that reaches no server`,
  });

const deniedBy =
  (policy: DenyingPolicy): Check =>
  (requests) => {
    const reason = entryIn(REASONS, policy);
    if (reason === undefined)
      throw new TypeError(`no policy is called ${policy}: it is one of ${Object.keys(REASONS).join(', ')}`);
    return {
      pass: requests.at(-1)?.reason === reason,
      what: `that the last request is denied by ${policy}`,
    };
  };

const cost =
  (usd: number): Check =>
  (requests) => {
    const unpriced = requests.find(
      (each) => each.costUsd === undefined && (each.inputTokens ?? each.outputTokens) !== undefined,
    );
    if (unpriced !== undefined)
      throw new Error(
        `no price for ${unpriced.usedModel ?? unpriced.model} of ${unpriced.provider}: config.modelCatalog sets prices`,
      );
    const sum = requests.reduce((total, { costUsd = 0 }) => total + costUsd, 0);
    return { pass: Math.abs(sum - usd) < 1e-6, what: `that requests cost ${usd} USD; they cost ${sum}` };
  };

/** For `expect.extend(matchers)`. All are asynchronous: `await expect(gateway).toHaveCalledTool('add')`. */
export const matchers = {
  toHaveCalledTool: (gateway: TestGateway, tool: string, target?: string): Promise<MatcherResult> =>
    resultOf(gateway, calledTool(tool, target)),
  toHaveDeniedTool: (gateway: TestGateway, tool: string): Promise<MatcherResult> =>
    resultOf(gateway, deniedTool(tool)),
  toBeDeniedBy: (gateway: TestGateway, policy: DenyingPolicy): Promise<MatcherResult> =>
    resultOf(gateway, deniedBy(policy)),
  toHaveCost: (gateway: TestGateway, usd: number): Promise<MatcherResult> => resultOf(gateway, cost(usd)),
};

/** The same without a test runner: each rejects with an `Error` if the statement, or with `not` its contrary, is not true. */
export function assertThat(gateway: TestGateway): GatewayStatements {
  return { ...statements(gateway, true), not: statements(gateway, false) };
}

function statements(gateway: TestGateway, expected: boolean): GatewayMatchers<Promise<void>> {
  const assert = async (check: Check): Promise<void> => {
    const { pass, message } = await resultOf(gateway, check);
    if (pass !== expected) throw new Error(message());
  };
  return {
    toHaveCalledTool: (tool, target) => assert(calledTool(tool, target)),
    toHaveDeniedTool: (tool) => assert(deniedTool(tool)),
    toBeDeniedBy: (policy) => assert(deniedBy(policy)),
    toHaveCost: (usd) => assert(cost(usd)),
  };
}

async function resultOf(gateway: TestGateway, check: Check): Promise<MatcherResult> {
  if (!isTestGateway(gateway))
    throw new TypeError(
      'statements are on a gateway of testGateway: not on another gateway, a stub or a URL',
    );
  await gateway.idle();
  const requests = [...gateway.requests];
  const { pass, what } = check(requests);
  const lines = requests.length === 0 ? ['  no requests'] : requests.map(lineOf);
  return { pass, message: () => `expected ${pass ? 'not ' : ''}${what}\n${lines.join('\n')}` };
}

/** Matchers of test runners are called with any value. */
function isTestGateway(value: unknown): boolean {
  const { idle, requests } = membersOf(value);
  return typeof idle === 'function' && Array.isArray(requests);
}

/** One request in a message. */
function lineOf({ operation, path, status, target, tool, model, reason, error }: RequestFacts): string {
  const facts = [target, tool, model, reason, error].filter((each) => each !== undefined);
  return `  ${operation} ${path} ${status}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`;
}
