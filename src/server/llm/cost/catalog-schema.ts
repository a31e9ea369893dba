import { z } from 'zod';
import { parseRate } from './decimal.ts';

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
export type RateKind = keyof typeof RATE_DOCS;
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
export const RATE_KINDS = Object.keys(RATE_DOCS) as RateKind[];

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
      batch: ratesSchema
        .optional()
        .describe(
          'Rates of requests in batches, whatever their length. Default of each: half of the others.',
        ),
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
      z.strictObject({
        models: z
          .record(z.string(), modelSchema)
          .describe('Prices by name of the model, which may have a `*` at its beginning, its end or both.'),
      }),
    )
    .describe('Models by name of the provider in telemetry, such as `openai`.'),
});

/** The catalog of the package: with the price list that it is made of, and the day of the prices. */
export const builtInSchema = catalogSchema.extend({ source: z.string(), date: z.iso.date() });

export type BuiltInPrices = z.output<typeof builtInSchema>;

export type CatalogDocument = z.output<typeof catalogSchema>;

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
export type Rates = { readonly [Kind in RateKind]?: bigint | undefined };
