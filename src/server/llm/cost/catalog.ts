import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../kernel/files/config-file.ts';
import { parseJson, readJsonFile } from '../../kernel/files/json-file.ts';
import type { CostOutcome } from '../llm-call.ts';
import type { Usage } from '../usage.ts';
import { costToNumber, costToText, parseRate, rateToNumber } from './decimal.ts';

/** What each rate is for. */
const RATE_DOCS = {
  input: 'Input tokens that have no rate of their own.',
  output: 'Output tokens that have no rate of their own.',
  cacheRead: 'Input tokens read from a cache.',
  cacheWrite: 'Input tokens written to a cache.',
  cacheWrite1h: 'Input tokens written to a cache for an hour.',
  reasoning: 'Output tokens of reasoning. Default: `output`.',
  inputAudio: 'Input tokens of recordings. Default: `input`.',
  outputAudio: 'Output tokens of speech. Default: `output`.',
} as const;
type RateKind = keyof typeof RATE_DOCS;
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
const RATE_KINDS = Object.keys(RATE_DOCS) as RateKind[];

const rate = z.string().refine((text) => parseRate(text) !== undefined, {
  error: 'expected USD per million tokens such as "0.20", with at most six decimals',
});
const ratesSchema = z.strictObject(
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one schema for each kind
  Object.fromEntries(RATE_KINDS.map((kind) => [kind, rate.optional().describe(RATE_DOCS[kind])])) as Record<
    RateKind,
    z.ZodOptional<typeof rate>
  >,
);

const modelSchema = z.lazy(() =>
  z
    .strictObject({
      rates: ratesSchema
        .optional()
        .describe('Rates in USD per million tokens, as strings with at most six decimals.'),
      tiers: z
        .array(
          z.strictObject({
            contextOver: z.int().min(0).describe('Input tokens over which the tier applies.'),
            rates: ratesSchema.describe('Rates that replace those of the model.'),
          }),
        )
        .optional()
        .describe('Rates of calls with a long input, in ascending order of `contextOver`.'),
      tags: z.array(z.string()).optional().describe('Labels for people, without effect on prices.'),
    })
    .refine(
      ({ tiers = [] }) =>
        tiers.every((tier, index) => index === 0 || tier.contextOver > (tiers[index - 1]?.contextOver ?? 0)),
      {
        error: 'expected tiers in ascending order of `contextOver`',
      },
    ),
);

/** A price catalog: rates in USD per million tokens, as decimal strings, by provider and model. */
export const catalogSchema = z.strictObject({
  providers: z
    .record(
      z.string(),
      z.strictObject({ models: z.record(z.string(), modelSchema).describe('Prices by name of the model.') }),
    )
    .describe('Models by name of the provider in telemetry, such as `openai`.'),
});

type CatalogDocument = z.output<typeof catalogSchema>;

/** A catalog as written to a file, with rates as decimal strings. */
export interface CatalogText {
  readonly providers: Record<string, { readonly models: Readonly<Record<string, PriceTexts>> }>;
}
interface PriceTexts {
  readonly rates: RateTexts;
  readonly tiers?: readonly { readonly contextOver: number; readonly rates: RateTexts }[];
}
export type RateTexts = { readonly [Kind in RateKind]?: string };

/** Rates in millionths. */
type Rates = { readonly [Kind in RateKind]?: bigint | undefined };

/** Prices of a model. The last of `tiers` whose `contextOver` the input exceeds replaces some of the rates. */
interface ModelPrices {
  readonly rates: Rates;
  readonly tiers: readonly { readonly contextOver: number; readonly rates: Rates }[];
  readonly tags: readonly string[];
}

const parseRates = (texts: z.output<typeof ratesSchema> = {}): Rates =>
  Object.fromEntries(
    Object.entries(texts).flatMap(([kind, text]) => (text === undefined ? [] : [[kind, parseRate(text)]])),
  );

/** The merged catalogs of a configuration. Rates of later catalogs override those of earlier ones. */
export class PriceCatalog {
  readonly #models = new Map<string, ModelPrices>();
  readonly #isEmpty: boolean;

  constructor(documents: readonly CatalogDocument[]) {
    this.#isEmpty = documents.length === 0;
    for (const { providers } of documents) {
      for (const [provider, { models }] of Object.entries(providers)) {
        for (const [model, prices] of Object.entries(models)) this.#merge(key(provider, model), prices);
      }
    }
  }

  #merge(id: string, { rates, tiers = [], tags = [] }: z.output<typeof modelSchema>): void {
    const before = this.#models.get(id);
    this.#models.set(id, {
      rates: { ...before?.rates, ...parseRates(rates) },
      tiers:
        tiers.length > 0
          ? tiers.map((tier) => ({ ...tier, rates: parseRates(tier.rates) }))
          : (before?.tiers ?? []),
      tags: [...new Set([...(before?.tags ?? []), ...tags])],
    });
  }

  /**
   * The cost of a call, with the prices of the first of `models` that has any. Never throws: if there are none, `status` and
   * `reason` say why.
   */
  price(provider: string, models: readonly (string | undefined)[], usage: Usage | undefined): CostOutcome {
    if (this.#isEmpty) return { status: 'NoCatalog', reason: 'config.modelCatalog is not set' };
    const prices = this.#find(provider, models);
    if (prices === undefined) {
      const names = [...new Set(models.filter((model) => model !== undefined))];
      return { status: 'Missing', reason: `no prices for ${provider} ${names.join(' or ')}` };
    }
    if (usage === undefined)
      return { status: 'Unpriced', reason: 'no tokens were used: the request was not sent or was rejected' };
    const rates = ratesFor(prices, usage);
    if (RATE_KINDS.every((kind) => rates[kind] === undefined))
      return { status: 'Unpriced', reason: 'the catalog has no rates for the model' };
    return outcome(rates, usage);
  }

  #find(provider: string, models: readonly (string | undefined)[]): ModelPrices | undefined {
    for (const model of models) {
      const found = model === undefined ? undefined : this.#models.get(key(provider, model));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

const key = (provider: string, model: string): string => `${provider}\n${model}`;

/** The base rates, overridden by those of the highest tier that the input exceeds. */
function ratesFor({ rates, tiers }: ModelPrices, { input }: Usage): Rates {
  const tier = tiers.findLast(({ contextOver }) => input > contextOver);
  return tier === undefined ? rates : { ...rates, ...tier.rates };
}

/**
 * Cached and audio tokens are included in the input count, reasoning and audio tokens in the output count (the
 * convention of OpenAI-compatible providers). A token class without its own rate is billed as plain input or output. No
 * token is billed twice: recordings that were read from a cache are billed as cached.
 */
function tokensByKind(rates: Rates, usage: Usage): Record<RateKind, number> {
  const cacheRead = rates.cacheRead === undefined ? 0 : (usage.cachedInput ?? 0);
  const cacheWrite1h = rates.cacheWrite1h === undefined ? 0 : (usage.cacheWrite1h ?? 0);
  const cacheWrite = rates.cacheWrite === undefined ? 0 : Math.max(0, (usage.cacheWrite ?? 0) - cacheWrite1h);
  const { outputAudio = 0, reasoning = 0 } = usage;
  const uncached = Math.max(0, usage.input - cacheRead - cacheWrite - cacheWrite1h);
  const cachedAudio = Math.min(cacheRead, usage.cachedInputAudio ?? 0);
  const inputAudio = Math.min(uncached, Math.max(0, (usage.inputAudio ?? 0) - cachedAudio));
  return {
    input: uncached - inputAudio,
    output: Math.max(0, usage.output - reasoning - outputAudio),
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
