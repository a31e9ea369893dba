import type { Reason } from '../../core/errors.ts';
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
  oidc: 'Oidc',
  rateLimit: 'RateLimit',
  timeout: 'Timeout',
};

/** Statements on a test gateway. Each first waits until its requests have ended. */
export interface GatewayMatchers<Result> {
  /** A client called this tool, by its name at the server, and the call reached the server: no rule denied it. */
  toHaveCalledTool(tool: string, target?: string): Result;
  /** The last request was refused by this policy. Calls of tools that `mcpAuthorization` denies are no refused requests. */
  toBeDeniedBy(policy: DenyingPolicy): Result;
  /** All requests together cost so many USD, give or take a millionth. */
  toHaveCost(usd: number): Result;
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

const deniedBy =
  (policy: DenyingPolicy): Check =>
  (requests) => {
    const last = requests.at(-1);
    return {
      pass: last !== undefined && last.reason === REASONS[policy],
      what: `that the last request is denied by ${policy}`,
    };
  };

const cost =
  (usd: number): Check =>
  (requests) => {
    const sum = requests.reduce((total, { costUsd = 0 }) => total + costUsd, 0);
    return { pass: Math.abs(sum - usd) < 1e-6, what: `that requests cost ${usd} USD; they cost ${sum}` };
  };

/** For `expect.extend(matchers)`. All are asynchronous: `await expect(gateway).toHaveCalledTool('add')`. */
export const matchers = {
  toHaveCalledTool: (gateway: TestGateway, tool: string, target?: string): Promise<MatcherResult> =>
    resultOf(gateway, calledTool(tool, target)),
  toBeDeniedBy: (gateway: TestGateway, policy: DenyingPolicy): Promise<MatcherResult> =>
    resultOf(gateway, deniedBy(policy)),
  toHaveCost: (gateway: TestGateway, usd: number): Promise<MatcherResult> => resultOf(gateway, cost(usd)),
};

/** The same without a test runner: each rejects with an `Error` if the statement is not true. */
export function assertThat(gateway: TestGateway): GatewayMatchers<Promise<void>> {
  const assert = async (check: Check): Promise<void> => {
    const { pass, message } = await resultOf(gateway, check);
    if (!pass) throw new Error(message());
  };
  return {
    toHaveCalledTool: (tool, target) => assert(calledTool(tool, target)),
    toBeDeniedBy: (policy) => assert(deniedBy(policy)),
    toHaveCost: (usd) => assert(cost(usd)),
  };
}

async function resultOf(gateway: TestGateway, check: Check): Promise<MatcherResult> {
  await gateway.idle();
  const { pass, what } = check(gateway.requests);
  return {
    pass,
    message: () => `expected ${pass ? 'not ' : ''}${what}\n${gateway.requests.map(lineOf).join('\n')}`,
  };
}

/** One request in a message. */
function lineOf({ operation, path, status, target, tool, model, reason, error }: RequestFacts): string {
  const facts = [target, tool, model, reason, error].filter((each) => each !== undefined);
  return `  ${operation} ${path} ${status}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`;
}
