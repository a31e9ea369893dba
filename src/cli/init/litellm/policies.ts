import { membersOf } from '../../../core/foreign.ts';
import { numeric, seconds } from '../values.ts';
import type { Lost } from './lost.ts';

type Entry = Readonly<Record<string, unknown>>;

/** The sections of the file that have settings of all models. */
export interface Sections {
  readonly general: Entry;
  readonly litellm: Entry;
  readonly router: Entry;
}

/** LiteLLM's own default. */
const RETRIES = 2;

/** Statuses after which LiteLLM repeats a call, by the name of its error. */
const STATUSES: Readonly<Record<string, readonly number[]>> = {
  TimeoutErrorRetries: [408],
  RateLimitErrorRetries: [429],
  InternalServerErrorRetries: [500],
  ServiceUnavailableErrorRetries: [503],
};
const REPEATED = [408, 409, 429, 500, 502, 503, 504, 529];

/** `retry` of `llm.policies`; undefined if calls are not repeated. */
export function retryOf({ litellm, router }: Sections, lost: Lost): Entry | undefined {
  const byError = membersOf(router['retry_policy']);
  const usual = numeric(router['num_retries']) ?? numeric(litellm['num_retries']) ?? RETRIES;
  const numbers = Object.entries(STATUSES).map(([error]) => numeric(byError[error]) ?? usual);
  const attempts = Math.max(usual, ...numbers);
  if (attempts <= 0) return undefined;
  const never = Object.entries(STATUSES).flatMap(([, codes], index) =>
    (numbers[index] ?? 0) > 0 ? [] : codes,
  );
  const codes = usual > 0 ? REPEATED : Object.values(STATUSES).flat();
  const differing = numbers.filter((number) => number > 0 && number !== attempts);
  if (differing.length > 0)
    lost.add('router_settings.retry_policy', `every status is tried ${attempts} times again, or never`);
  const wait = numeric(router['retry_after']) ?? 0;
  return {
    attempts: Math.trunc(attempts),
    // LiteLLM waits half a second before the first repetition.
    backoff: wait > 0 ? seconds(wait) : '500ms',
    codes: codes.filter((code) => !never.includes(code)),
  };
}

/** `timeout` of `llm.policies`. */
export function timeoutOf(
  { litellm, router }: Sections,
  ofModels: readonly (readonly [name: string, timeout: number | undefined])[],
  lost: Lost,
): Entry | undefined {
  const usual = numeric(router['timeout']) ?? numeric(litellm['request_timeout']);
  const all = new Set(ofModels.map(([, timeout]) => timeout ?? usual));
  const common = all.size === 1 ? [...all][0] : usual;
  for (const [name, timeout] of ofModels)
    if (timeout !== undefined && timeout !== common)
      lost.add('timeout', 'set for all models alone: `llm.policies.timeout`', { owner: name });
  return common === undefined || common <= 0 ? undefined : { backendRequestTimeout: seconds(common) };
}

/** After these, LiteLLM takes a deployment for unhealthy. It also falls back after other errors, which are those of a request. */
const UNHEALTHY = 'response.code >= 500 || response.code in [401, 402, 404, 408, 429]';

/** `health` of models with alternatives: which failures lead to the next model, and when a model is evicted. */
export function healthOf(sections: Sections): Entry {
  const eviction = evictionOf(sections);
  return { unhealthyExpression: UNHEALTHY, ...(eviction === undefined ? {} : { eviction }) };
}

function evictionOf({ litellm, router }: Sections): Entry | undefined {
  if (router['disable_cooldowns'] === true) return { healthThreshold: 0 };
  const fails = numeric(router['allowed_fails']) ?? numeric(litellm['allowed_fails']);
  const cooldown = numeric(router['cooldown_time']) ?? numeric(litellm['cooldown_time']);
  const eviction = {
    ...(cooldown !== undefined && cooldown > 0 && { duration: seconds(cooldown) }),
    ...(fails !== undefined && fails >= 0 && { consecutiveFailures: Math.trunc(fails) + 1 }),
  };
  return Object.keys(eviction).length === 0 ? undefined : eviction;
}

/** LiteLLM begins such windows at the same times: at midnight, on Monday, on the first of the month, in UTC. */
const WINDOWS: Readonly<Record<string, string>> = {
  '1h': 'hour',
  '60m': 'hour',
  '24h': 'day',
  '1d': 'day',
  '7d': 'week',
  '1w': 'week',
  '30d': 'month',
  '1mo': 'month',
};

/** `budgets` of `llm.policies`: what all calls may cost together. */
export function budgetsOf({ litellm }: Sections, lost: Lost): readonly Entry[] | undefined {
  const { max_budget: limit, budget_duration: duration } = litellm;
  if (limit === undefined || limit === null) return undefined;
  const amount = numeric(limit);
  const window =
    duration === undefined || duration === null
      ? 'total'
      : typeof duration === 'string' && Object.hasOwn(WINDOWS, duration)
        ? WINDOWS[duration]
        : undefined;
  if (amount === undefined || amount < 1e-6 || amount > 1_000_000 || window === undefined) {
    const reason =
      window === undefined
        ? `no window of this length (${[...new Set(Object.values(WINDOWS))].join(', ')}): set \`llm.policies.budgets\``
        : 'not an amount';
    lost.add('litellm_settings.max_budget', reason);
    return undefined;
  }
  return [{ name: 'litellm', limit: `${amount.toFixed(6).replace(/\.?0+$/, '')}USD/${window}` }];
}
