import { LruMap } from '../../../core/lru-map.ts';
import type { CatalogDocument, Rates } from './catalog-schema.ts';
import { parseRate } from './decimal.ts';

/** Prices of a model. The last of `tiers` whose `contextOver` the input exceeds replaces some of the rates. */
export interface ModelPrices {
  readonly rates: Rates;
  readonly tiers: readonly { readonly contextOver: number; readonly rates: Rates }[];
  readonly tags: readonly string[];
}

/** Names that a provider answers with, whose prices were looked up: clients choose some of them. */
const MOST_KNOWN = 1_000;

/** The prices of merged catalogs, by provider and model. A name of a model may have a `*` at its beginning and end. */
export class PriceTable {
  readonly #models = new Map<string, ModelPrices>();
  /** Names with a `*` by provider, most specific first. */
  readonly #patterns = new Map<string, string[]>();
  readonly #found = new LruMap<string, ModelPrices | null>(MOST_KNOWN);

  /** Rates of later catalogs override those of earlier ones. */
  constructor(documents: readonly CatalogDocument[]) {
    for (const { providers } of documents)
      for (const [provider, { models }] of Object.entries(providers))
        for (const [model, prices] of Object.entries(models)) this.#merge(provider, model, prices);
    for (const names of this.#patterns.values()) names.sort((one, other) => other.length - one.length);
  }

  find(provider: string, model: string): ModelPrices | undefined {
    const exact = this.#models.get(key(provider, model));
    const patterns = exact === undefined ? this.#patterns.get(provider) : undefined;
    if (patterns === undefined) return exact;
    const id = key(provider, model);
    let found = this.#found.get(id);
    if (found === undefined) {
      const pattern = patterns.find((each) => matches(each, model));
      found = (pattern === undefined ? undefined : this.#models.get(key(provider, pattern))) ?? null;
      this.#found.set(id, found);
    }
    return found ?? undefined;
  }

  #merge(
    provider: string,
    model: string,
    { rates, tiers = [], tags = [] }: CatalogDocument['providers'][string]['models'][string],
  ): void {
    const id = key(provider, model);
    const before = this.#models.get(id);
    if (before === undefined && model.includes('*'))
      this.#patterns.set(provider, [...(this.#patterns.get(provider) ?? []), model]);
    this.#models.set(id, {
      rates: { ...before?.rates, ...parseRates(rates) },
      tiers:
        tiers.length > 0
          ? tiers.map((tier) => ({ ...tier, rates: parseRates(tier.rates) }))
          : (before?.tiers ?? []),
      tags: [...new Set([...(before?.tags ?? []), ...tags])],
    });
  }
}

const key = (provider: string, model: string): string => `${provider}\n${model}`;

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
