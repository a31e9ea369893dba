import type { Batched, PriceCatalog } from '../cost/catalog.ts';
import { costToNumber, costToText } from '../cost/decimal.ts';
import type { CostOutcome } from '../llm-call.ts';
import { COUNTS, MAX_TOKENS, type Usage } from '../usage.ts';
import type { BatchUsage } from './read-batch.ts';

/** Models that a record names; a batch may have others. */
const MOST_MODELS = 5;
/** Characters of such a name, which the provider chooses. */
const MODEL_NAME = 100;

/** What the requests of a batch have used together, each at the price of its own model. */
export class BatchSum {
  readonly #prices: PriceCatalog | undefined;
  readonly #provider: string;
  readonly #names: readonly (string | undefined)[];
  readonly #models = new Set<string>();
  #problem: CostOutcome | undefined;
  #isPriced = false;
  usage: Usage = { input: 0, output: 0 };
  picoUsd = 0n;

  /** `names`: models of the call, for requests that name none. */
  constructor(prices: PriceCatalog | undefined, provider: string, names: readonly (string | undefined)[]) {
    this.#prices = prices;
    this.#provider = provider;
    this.#names = names;
  }

  add({ model, usage }: BatchUsage, batched: Batched): void {
    // Other models of the configuration have other prices: the call names none of those in the batch.
    const cost = this.#prices?.price(
      this.#provider,
      model === undefined ? this.#names : [model],
      usage,
      batched,
    );
    if (cost?.picoUsd !== undefined) {
      this.#isPriced = true;
      this.picoUsd += cost.picoUsd;
    } else this.#problem ??= cost;
    const sum: { -readonly [K in keyof Usage]: Usage[K] } = { ...this.usage };
    for (const count of COUNTS) {
      const more = usage[count];
      if (more !== undefined) sum[count] = Math.min(MAX_TOKENS, (sum[count] ?? 0) + more);
    }
    this.usage = sum;
    if (model !== undefined && this.#models.size <= MOST_MODELS) this.#models.add(model.slice(0, MODEL_NAME));
  }

  /** The models in alphabetical order, as one name. */
  get model(): string | undefined {
    const [...names] = this.#models;
    if (names.length === 0) return undefined;
    const shown = names.slice(0, MOST_MODELS).sort();
    return [...shown, ...(names.length > MOST_MODELS ? ['others'] : [])].join(', ');
  }

  /** A part of the cost, if prices are known. */
  cost(picoUsd: bigint): CostOutcome {
    const { status, reason } = this.#problem ?? { status: 'Exact' as const, reason: undefined };
    const total = costToText(picoUsd);
    return {
      status,
      ...(reason !== undefined && { reason }),
      ...(this.#isPriced && { picoUsd, total, parts: { total: costToNumber(picoUsd) } }),
    };
  }
}
