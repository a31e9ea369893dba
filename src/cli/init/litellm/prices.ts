import { builtInPrices } from '../../../server/llm/cost/built-in-prices.ts';
import type { CatalogText, RateTexts } from '../../../server/llm/cost/catalog-schema.ts';
import { rateToNumber, roundedRate } from '../../../server/llm/cost/decimal.ts';
import { findProvider } from '../../../server/llm/providers/index.ts';
import { numeric } from '../values.ts';
import type { Lost } from './lost.ts';

type Entry = Readonly<Record<string, unknown>>;

/** LiteLLM's prices in USD per token, as rates of a price catalog. */
const RATES = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cacheRead',
  cache_creation_input_token_cost: 'cacheWrite',
  cache_creation_input_token_cost_above_1hr: 'cacheWrite1h',
  output_cost_per_reasoning_token: 'reasoning',
  input_cost_per_audio_token: 'inputAudio',
  output_cost_per_audio_token: 'outputAudio',
} as const satisfies Readonly<Record<string, keyof RateTexts>>;

/** Prices of a model, by the names that a catalog has. */
export interface Price {
  readonly provider: string;
  readonly model: string;
  readonly rates: RateTexts;
}

/** The price of a deployment, in the first of some places that has each rate; else that of its `base_model`. */
export function priceOf(
  { name, provider, model }: { readonly name: string; readonly provider: string; readonly model: string },
  places: readonly Entry[],
  lost: Lost,
): Price | undefined {
  const rates = Object.entries(RATES).flatMap(([key, kind]) => {
    const value = places.map((place) => place[key]).find((each) => each !== undefined && each !== null);
    if (value === undefined) return [];
    const rate = roundedRate((numeric(value) ?? Number.NaN) * 1_000_000);
    if (rate !== undefined && !model.includes('*')) return [[kind, rate.text] as const];
    const reason = rate === undefined ? 'not a price' : 'a price is of one model, not of a pattern';
    lost.add(key, reason, { owner: name });
    return [];
  });
  const whose = findProvider(provider)?.telemetryName ?? provider;
  if (rates.length > 0) return { provider: whose, model, rates: Object.fromEntries(rates) };
  const base = places.map((place) => place['base_model']).find((each) => typeof each === 'string');
  return typeof base === 'string' ? priceOfBase(base, { name, provider: whose, model }, lost) : undefined;
}

/** What a deployment costs that has the name of its user's choice, as those of Azure do. */
function priceOfBase(
  base: string,
  to: Omit<Price, 'rates'> & { readonly name: string },
  lost: Lost,
): Price | undefined {
  const { name, provider, model } = to;
  const prices = builtInPrices().find(provider, base.slice(base.indexOf('/') + 1));
  if (prices === undefined || model.includes('*')) {
    lost.add('base_model', 'its price is not known: `agctl costs import`', { owner: name });
    return undefined;
  }
  const rates = Object.entries(prices.rates).flatMap(([kind, rate]) => {
    const text = rate === undefined ? undefined : roundedRate(rateToNumber(rate))?.text;
    return text === undefined ? [] : [[kind, text] as const];
  });
  return { provider, model, rates: Object.fromEntries(rates) };
}

/** What a token of the prompt and one of the answer cost, by which LiteLLM compares deployments; infinite if that is not known. */
export function costOf(provider: string, model: string, price: Price | undefined): number {
  const { input, output } = price?.rates ?? {};
  if (input !== undefined || output !== undefined) return Number(input ?? 0) + Number(output ?? 0);
  const known = builtInPrices().find(findProvider(provider)?.telemetryName ?? provider, model)?.rates;
  if (known === undefined) return Number.POSITIVE_INFINITY;
  return rateToNumber(known.input ?? 0n) + rateToNumber(known.output ?? 0n);
}

/** One catalog of all prices. Two deployments of one model have one price: that of the first. */
export function catalogOf(
  deployments: readonly { readonly name: string; readonly price: Price | undefined }[],
  lost: Lost,
): CatalogText['providers'] {
  const catalog = new Map<string, Map<string, RateTexts>>();
  for (const { name, price } of deployments) {
    if (price === undefined) continue;
    const models = catalog.get(price.provider) ?? new Map<string, RateTexts>();
    catalog.set(price.provider, models);
    const known = models.get(price.model);
    if (known === undefined) models.set(price.model, price.rates);
    else if (JSON.stringify(known) !== JSON.stringify(price.rates))
      lost.add('input_cost_per_token', `${price.model} of this provider has another price already`, {
        owner: name,
      });
  }
  return Object.fromEntries(
    [...catalog].map(([provider, models]) => [
      provider,
      { models: Object.fromEntries([...models].map(([model, rates]) => [model, { rates }])) },
    ]),
  );
}
