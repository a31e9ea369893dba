import { z } from 'zod';
import { elementsOf, entryIn, membersOf } from '../../../core/foreign.ts';
import { type CatalogText, catalogSchema, type RateTexts } from './catalog-schema.ts';
import { roundedRate } from './decimal.ts';

// The part of https://models.dev/api.json that prices need. Costs are numbers in USD per million tokens. Unknown
// members are ignored: the list gains some every few months.

const costSchema = z.record(z.string(), z.unknown());
const listSchema = z.record(
  z.string(),
  z.object({
    models: z.record(z.string(), z.object({ status: z.string().optional(), cost: costSchema.optional() })),
  }),
);
type Costs = z.output<typeof costSchema>;

const RATE_NAMES = {
  input: 'input',
  output: 'output',
  cache_read: 'cacheRead',
  cache_write: 'cacheWrite',
  reasoning: 'reasoning',
  input_audio: 'inputAudio',
  output_audio: 'outputAudio',
} as const;

/** Providers whose id in the list differs from their name in the gateway. */
const RENAMED: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'aws.bedrock',
  google: 'gcp.gemini',
  'google-vertex': 'gcp.vertex_ai',
  'github-copilot': 'copilot',
  'fireworks-ai': 'fireworks',
};
const SAME_NAME = [
  'anthropic',
  'azure',
  'baseten',
  'cerebras',
  'cohere',
  'deepinfra',
  'deepseek',
  'groq',
  'huggingface',
  'mistral',
  'openai',
  'openrouter',
  'togetherai',
  'xai',
];

/** Providers imported by default. */
const KNOWN: ReadonlySet<string> = new Set([...Object.keys(RENAMED), ...SAME_NAME]);

export interface ImportOptions {
  /** Providers to import, by their id in the list or their name in the gateway. Default: all that the gateway knows. */
  readonly providers?: readonly string[];
  /** Whether to import models that their provider has deprecated. */
  readonly includeDeprecated: boolean;
}

export interface ImportedCatalog {
  readonly catalog: CatalogText;
  /** Skipped models and rounded prices, one line each. */
  readonly warnings: readonly string[];
}

/** The list cannot be imported. The message gives the reason, `hint` a fix. */
export class ImportError extends Error {
  readonly hint: string | undefined;
  /** True if the input is not a list of models or lacks a requested provider; false if it has no usable price. */
  readonly isUnreadable: boolean;

  constructor(message: string, isUnreadable: boolean, hint?: string) {
    super(message);
    this.name = 'ImportError';
    this.isUnreadable = isUnreadable;
    this.hint = hint;
  }
}

/**
 * Converts a parsed models.dev list to a catalog for `config.modelCatalog`. A model with a price that cannot be
 * represented is skipped with a warning: a wrong price is worse than none. Throws `ImportError`.
 */
export function importModelsDev(list: unknown, options: ImportOptions): ImportedCatalog {
  const parsed = listSchema.safeParse(list);
  if (!parsed.success) throw notAList(list, parsed.error);
  const warnings: string[] = [];
  const providers: CatalogText['providers'] = {};
  for (const [id, { models }] of selectProviders(parsed.data, options)) {
    const name = entryIn(RENAMED, id) ?? id;
    const entries = sorted(models).flatMap(([model, { status, cost }]) => {
      if (cost === undefined || (status === 'deprecated' && !options.includeDeprecated)) return [];
      const prices = pricesOf(cost, `${id} ${model}`, warnings);
      return prices === undefined ? [] : [[model, prices] as const];
    });
    if (entries.length > 0) providers[name] = { models: Object.fromEntries(entries) };
  }
  if (Object.keys(providers).length === 0)
    throw new ImportError('no importable models matched: none of them has a usable price', false);
  const checked = catalogSchema.safeParse({ providers });
  if (!checked.success) throw new Error(`the import made an invalid catalog: ${checked.error.message}`);
  return { catalog: { providers }, warnings };
}

function notAList(list: unknown, { issues: [issue] }: z.ZodError): ImportError {
  if (typeof list === 'object' && list !== null && 'providers' in list)
    return new ImportError(
      'this is a price catalog already, not a list of models',
      true,
      'name the file in config.modelCatalog',
    );
  return new ImportError(
    `this is not a list of models in the format of models.dev: ${issue?.path.join('.') || 'the file'}: ${issue?.message}`,
    true,
    'curl -o models.json https://models.dev/api.json',
  );
}

type Provider = z.output<typeof listSchema>[string];

function selectProviders(
  list: Readonly<Record<string, Provider>>,
  { providers }: ImportOptions,
): [string, Provider][] {
  const all = sorted(list);
  if (providers === undefined) return all.filter(([id]) => KNOWN.has(id));
  const isNamed = (name: string, id: string): boolean => name === id || name === entryIn(RENAMED, id);
  const unknown = providers.filter((name) => !all.some(([id]) => isNamed(name, id)));
  if (unknown.length > 0)
    throw new ImportError(
      `no providers matched ${unknown.map((name) => `\`${name}\``).join(', ')}`,
      true,
      `providers of the list: ${all.map(([id]) => id).join(', ')}`,
    );
  return all.filter(([id]) => providers.some((name) => isNamed(name, id)));
}

/** Entries sorted by name, so that two imports can be compared. */
function sorted<T>(record: Readonly<Record<string, T>>): [string, T][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
}

type Prices = CatalogText['providers'][string]['models'][string];

/** The prices of one model; undefined if it has none, or (with a warning) if one cannot be represented. */
function pricesOf(cost: Costs, where: string, warnings: string[]): Prices | undefined {
  const rates = ratesOf(cost, `${where}: cost`, warnings);
  const tiers = tiersOf(cost, where, warnings);
  if (rates === undefined || tiers === undefined) return undefined;
  if (Object.keys(rates).length === 0 && tiers.length === 0) return undefined;
  return { rates, ...(tiers.length === 0 ? {} : { tiers }) };
}

function ratesOf(cost: Costs, where: string, warnings: string[]): RateTexts | undefined {
  const rates: Record<string, string> = {};
  for (const [member, name] of Object.entries(RATE_NAMES)) {
    const value = cost[member];
    if (value === undefined || value === null) continue;
    const rate = typeof value === 'number' ? roundedRate(value) : undefined;
    if (rate === undefined) {
      warnings.push(`${where}.${member} is ${JSON.stringify(value)}, not a price: the model is skipped`);
      return undefined;
    }
    if (!rate.isExact)
      warnings.push(`${where}.${member} is ${JSON.stringify(value)}, rounded to ${rate.text}`);
    rates[name] = rate.text;
  }
  return rates;
}

const tierSchema = z.object({
  tier: z.object({ type: z.literal('context'), size: z.int().min(0) }),
});

/** Newer lists have `tiers`. Older ones have one price for more than 200,000 tokens, which newer ones repeat. */
function tiersOf(cost: Costs, where: string, warnings: string[]): Prices['tiers'] | undefined {
  const { tiers, context_over_200k: over200k } = cost;
  const given = Array.isArray(tiers)
    ? elementsOf(tiers)
    : over200k === undefined || over200k === null
      ? []
      : [{ ...membersOf(over200k), tier: { type: 'context', size: 200_000 } }];
  const read: { contextOver: number; rates: RateTexts }[] = [];
  for (const [index, tier] of given.entries()) {
    const parsed = tierSchema.safeParse(tier);
    const contextOver = parsed.data?.tier.size;
    if (contextOver === undefined || read.some((other) => other.contextOver === contextOver)) {
      warnings.push(
        `${where}: cost.tiers.${index} is not a distinct tier by context length: the model is skipped`,
      );
      return undefined;
    }
    const rates = ratesOf(membersOf(tier), `${where}: cost.tiers.${index}`, warnings);
    if (rates === undefined) return undefined;
    read.push({ contextOver, rates });
  }
  return read.sort((a, b) => a.contextOver - b.contextOver);
}
