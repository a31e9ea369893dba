import { LruMap } from '../../../core/lru-map.ts';
import type { CatalogDocument, Rates } from './catalog-schema.ts';
import { parseRate } from './decimal.ts';

/** Prices of a model. The last of `tiers` whose `contextOver` the input exceeds replaces some of the rates. */
export interface ModelPrices {
  readonly rates: Rates;
  readonly tiers: readonly { readonly contextOver: number; readonly rates: Rates }[];
  /** Those of batches that are not half of the others. */
  readonly batch: Rates;
  readonly tags: readonly string[];
}

/** Names that a provider answers with, whose prices were looked up: clients choose some of them. */
const MOST_KNOWN = 1_000;

/** The prices of merged catalogs, by provider and model. A name of a model may have a `*` at its beginning and end. */
export class PriceTable {
  readonly #providers = new Map<string, ProviderPrices>();

  /** Rates of later catalogs override those of earlier ones. */
  constructor(documents: readonly CatalogDocument[]) {
    for (const { providers } of documents)
      for (const [name, { models }] of Object.entries(providers)) {
        const prices = this.#providers.get(name) ?? new ProviderPrices();
        this.#providers.set(name, prices);
        for (const [model, given] of Object.entries(models)) prices.merge(model, given);
      }
  }

  find(provider: string, model: string): ModelPrices | undefined {
    return this.#providers.get(provider)?.find(model);
  }
}

/** The prices of one provider. */
class ProviderPrices {
  readonly #models = new Map<string, ModelPrices>();
  /** Names with a `*`, most specific first. */
  readonly #patterns: string[] = [];
  /** What names without an own price have by a pattern. */
  readonly #found = new LruMap<string, ModelPrices | null>(MOST_KNOWN);

  find(model: string): ModelPrices | undefined {
    const exact = this.#models.get(model);
    if (exact !== undefined || this.#patterns.length === 0) return exact;
    let found = this.#found.get(model);
    if (found === undefined) {
      const pattern = this.#patterns.find((each) => matches(each, model));
      found = (pattern === undefined ? undefined : this.#models.get(pattern)) ?? null;
      this.#found.set(model, found);
    }
    return found ?? undefined;
  }

  merge(
    model: string,
    { rates, tiers = [], batch, tags = [] }: CatalogDocument['providers'][string]['models'][string],
  ): void {
    const before = this.#models.get(model);
    if (before === undefined && model.includes('*')) {
      this.#patterns.push(model);
      this.#patterns.sort((one, other) => other.length - one.length);
    }
    this.#models.set(model, {
      rates: { ...before?.rates, ...parseRates(rates) },
      tiers:
        tiers.length > 0
          ? tiers.map((tier) => ({ ...tier, rates: parseRates(tier.rates) }))
          : (before?.tiers ?? []),
      batch: { ...before?.batch, ...parseRates(batch) },
      tags: [...new Set([...(before?.tags ?? []), ...tags])],
    });
  }
}

const parseRates = (texts: Readonly<Record<string, string | undefined>> = {}): Rates =>
  Object.fromEntries(
    Object.entries(texts).flatMap(([kind, text]) => (text === undefined ? [] : [[kind, parseRate(text)]])),
  );

function matches(pattern: string, name: string): boolean {
  const [isOpenAtStart, isOpenAtEnd] = [pattern.startsWith('*'), pattern.endsWith('*')];
  const literal = pattern.slice(isOpenAtStart ? 1 : 0, isOpenAtEnd ? -1 : undefined);
  if (isOpenAtStart && isOpenAtEnd) return name.includes(literal);
  return isOpenAtStart ? name.endsWith(literal) : isOpenAtEnd && name.startsWith(literal);
}
