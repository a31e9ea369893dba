import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../kernel/files/config-file.ts';
import { parseJson, readJsonFile } from '../../kernel/files/json-file.ts';
import type { CostOutcome } from '../llm-call.ts';
import type { Usage } from '../usage.ts';
import { BATCH_DIVISOR, builtInPrices } from './built-in-prices.ts';
import {
  type CatalogDocument,
  catalogSchema,
  RATE_KINDS,
  type RateKind,
  type Rates,
} from './catalog-schema.ts';
import { costToNumber, costToText, rateToNumber } from './decimal.ts';
import { type ModelPrices, PriceTable } from './price-table.ts';

/** The merged catalogs of a configuration. Rates of later catalogs override those of earlier ones. */
export class PriceCatalog {
  readonly #table: PriceTable;
  readonly #isEmpty: boolean;

  constructor(documents: readonly CatalogDocument[]) {
    this.#table = new PriceTable(documents);
    this.#isEmpty = documents.length === 0;
  }

  /**
   * The cost of a call, with the prices of the first of `models` that has any, or else with those that are built in. Never
   * throws: if there are none, `status` and `reason` say why. `batched`: of requests in a batch.
   */
  price(
    provider: string,
    models: readonly (string | undefined)[],
    usage: Usage | undefined,
    batched?: Batched,
  ): CostOutcome {
    const prices = this.#find(provider, models);
    if (prices === undefined || (this.#isEmpty && usage === undefined))
      return new UnknownCost(this.#isEmpty, provider, models);
    if (usage === undefined)
      return { status: 'Unpriced', reason: 'no tokens were used: the request was not sent or was rejected' };
    const rates = ratesFor(prices, usage, batched);
    if (RATE_KINDS.every((kind) => rates[kind] === undefined))
      return { status: 'Unpriced', reason: 'the catalog has no rates for the model' };
    return outcome(rates, usage);
  }

  /** Whether calls of a model have a price. */
  hasPrice(provider: string, names: readonly string[]): boolean {
    return this.price(provider, names, { input: 1, output: 1 }).status === 'Exact';
  }

  #find(provider: string, models: readonly (string | undefined)[]): ModelPrices | undefined {
    return (
      (this.#isEmpty ? undefined : pricesIn(this.#table, provider, models)) ??
      pricesIn(builtInPrices(), provider, models)
    );
  }
}

/** The prices of the first of `models` that has any. */
function pricesIn(
  table: PriceTable,
  provider: string,
  models: readonly (string | undefined)[],
): ModelPrices | undefined {
  for (const model of models) {
    const found = model === undefined ? undefined : table.find(provider, model);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** No price is known. Why is computed when it is read: most calls without a catalog are not explained. */
class UnknownCost implements CostOutcome {
  readonly status: 'NoCatalog' | 'Missing';
  readonly #provider: string;
  readonly #models: readonly (string | undefined)[];

  constructor(hasNoCatalog: boolean, provider: string, models: readonly (string | undefined)[]) {
    this.status = hasNoCatalog ? 'NoCatalog' : 'Missing';
    this.#provider = provider;
    this.#models = models;
  }

  get reason(): string {
    const names = [...new Set(this.#models.filter((model) => model !== undefined))];
    const missing = `no prices for ${this.#provider} ${names.join(' or ')}`;
    return this.status === 'Missing'
      ? missing
      : `${missing} are built in, and config.modelCatalog is not set`;
  }
}

/** Requests in a batch whose tokens are a sum. */
export interface Batched {
  readonly requests: number;
}

/** The base rates, overridden by those of the highest tier that the input exceeds: of a batch, the average of its requests. */
function ratesFor({ rates, tiers, batch }: ModelPrices, { input }: Usage, batched?: Batched): Rates {
  const length = input / Math.max(1, batched?.requests ?? 1);
  const tier = tiers.findLast(({ contextOver }) => length > contextOver);
  const usual = tier === undefined ? rates : { ...rates, ...tier.rates };
  return batched === undefined ? usual : { ...discounted(usual), ...batch };
}

function discounted(rates: Rates): Rates {
  const entries = RATE_KINDS.flatMap((kind) => {
    const rate = rates[kind];
    return rate === undefined ? [] : [[kind, (rate + BATCH_DIVISOR - 1n) / BATCH_DIVISOR] as const];
  });
  return Object.fromEntries(entries);
}

/**
 * Cached and audio tokens are included in the input count, reasoning and audio tokens in the output count (the
 * convention of OpenAI-compatible providers). A token class without its own rate is billed as plain input or output. No
 * token is billed twice: recordings that were read from a cache are billed as cached, and parts of a count up to all of it.
 */
function tokensByKind(rates: Rates, usage: Usage): Record<RateKind, number> {
  const { input, output } = usage;
  const cacheRead = rates.cacheRead === undefined ? 0 : Math.min(input, usage.cachedInput ?? 0);
  const unread = input - cacheRead;
  const cacheWrite1h = rates.cacheWrite1h === undefined ? 0 : Math.min(unread, usage.cacheWrite1h ?? 0);
  const written = Math.min(unread, usage.cacheWrite ?? 0);
  const cacheWrite = rates.cacheWrite === undefined ? 0 : Math.max(0, written - cacheWrite1h);
  const reasoning = Math.min(output, usage.reasoning ?? 0);
  const outputAudio = Math.min(output - reasoning, usage.outputAudio ?? 0);
  const uncached = unread - cacheWrite - cacheWrite1h;
  const cachedAudio = Math.min(cacheRead, usage.cachedInputAudio ?? 0);
  const inputAudio = Math.min(uncached, Math.max(0, (usage.inputAudio ?? 0) - cachedAudio));
  return {
    input: uncached - inputAudio,
    output: output - reasoning - outputAudio,
    cacheRead,
    cacheWrite,
    cacheWrite1h,
    reasoning,
    inputAudio,
    outputAudio,
  };
}

const FALLBACK: Partial<Record<RateKind, RateKind>> = {
  reasoning: 'output',
  outputAudio: 'output',
  inputAudio: 'input',
};

const rateOf = (rates: Rates, kind: RateKind): bigint => rates[kind] ?? rates[FALLBACK[kind] ?? kind] ?? 0n;

function outcome(rates: Rates, usage: Usage): CostOutcome {
  const tokens = tokensByKind(rates, usage);
  let total = 0n;
  for (const kind of RATE_KINDS) if (tokens[kind] > 0) total += BigInt(tokens[kind]) * rateOf(rates, kind);
  return new ExactCost(total, rates, tokens);
}

/** A price that is known. What budgets and most log lines do not need is computed when it is read. */
class ExactCost implements CostOutcome {
  readonly status = 'Exact';
  readonly picoUsd: bigint;
  readonly #rates: Rates;
  readonly #tokens: Record<RateKind, number>;
  #total: string | undefined;

  constructor(picoUsd: bigint, rates: Rates, tokens: Record<RateKind, number>) {
    this.picoUsd = picoUsd;
    this.#rates = rates;
    this.#tokens = tokens;
  }

  get total(): string {
    this.#total ??= costToText(this.picoUsd);
    return this.#total;
  }

  get parts(): Record<string, number> {
    return {
      total: costToNumber(this.picoUsd),
      ...Object.fromEntries(
        RATE_KINDS.map((kind) => [
          kind,
          costToNumber(BigInt(this.#tokens[kind]) * rateOf(this.#rates, kind)),
        ]),
      ),
    };
  }

  get rates(): Record<string, number> {
    return Object.fromEntries(
      Object.entries(this.#rates).flatMap(([kind, value]) =>
        value === undefined ? [] : [[kind, rateToNumber(value)]],
      ),
    );
  }
}

/** A reference to a price catalog: a file, or inline as JSON text or an object. */
export const catalogReferenceSchema = z.lazy(() =>
  z.union([
    z.strictObject({
      file: z.string().min(1).describe('JSON file that contains the catalog.'),
    }),
    z.strictObject({
      inline: z.union([z.string().min(1), catalogSchema]).describe('The catalog, as JSON text or an object.'),
    }),
  ]),
);

/** Mistakes of one catalog that are shown; a catalog of the wrong form has one for each of its models. */
const SHOWN_ISSUES = 5;

/** Loads every catalog of a configuration. An unreadable or invalid one is reported and skipped. */
export function loadCatalogs(
  references: readonly z.output<typeof catalogReferenceSchema>[],
  context: CompileContext,
): PriceCatalog {
  const documents = references.flatMap((reference, index): CatalogDocument[] => {
    const at = context.at(index);
    try {
      const parsed = catalogSchema.safeParse(documentOf(reference, context.folder));
      if (parsed.success) return [parsed.data];
      at.at('file' in reference ? 'file' : 'inline').report({
        code: 'AGW0104',
        message: 'the price catalog is not valid',
        help: 'expected `{"providers": {NAME: {"models": {NAME: {"rates": {"input": "0.20"}}}}}}`, with rates as strings in USD per million tokens; `agctl costs import` writes one',
        notes: parsed.error.issues
          .slice(0, SHOWN_ISSUES)
          .map(({ path, message }) => `${path.join('.') || 'at the top'}: ${message}`),
        notesQuoteFile: true,
      });
    } catch (error) {
      const missing = 'file' in reference ? missingConfigFile(context.folder, reference.file) : undefined;
      at.report({
        code: 'AGW0005',
        message: `the price catalog cannot be read: ${missing ?? messageOf(error)}`,
      });
    }
    return [];
  });
  return new PriceCatalog(documents);
}

function documentOf(reference: z.output<typeof catalogReferenceSchema>, folder: string): unknown {
  if ('file' in reference)
    return readJsonFile(resolveConfigFile(folder, reference.file), LIMITS.priceCatalogBytes);
  return typeof reference.inline === 'string' ? parseJson(reference.inline, '`inline`') : reference.inline;
}
