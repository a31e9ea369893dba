import { z } from 'zod';
import { type CatalogText, catalogSchema, type RateTexts } from './catalog.ts';
import { roundedRate } from './decimal.ts';

// The list of models that https://models.dev/api.json publishes, as far as prices need it. Costs are numbers: USD per
// million tokens. Members that are not named here are ignored: the list gains some every few months.

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

/** Providers of the list that a gateway calls by another name. */
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

/** Providers of the list that are imported when none are named. */
const KNOWN: ReadonlySet<string> = new Set([...Object.keys(RENAMED), ...SAME_NAME]);

export interface ImportOptions {
  /** Providers to take, by their id in the list or their name here; every one that a gateway knows when absent. */
  readonly providers?: readonly string[];
  /** Also models that their provider has deprecated. */
  readonly includeDeprecated: boolean;
}

export interface ImportedCatalog {
  readonly catalog: CatalogText;
  /** What was left out or changed, a line each. */
  readonly warnings: readonly string[];
}

/** The list cannot be imported; the message says why and the hint what to do. */
export class ImportError extends Error {
  readonly hint: string | undefined;
  /** Whether the input cannot be read at all, or says nothing that was wanted. */
  readonly isUnreadable: boolean;

  constructor(message: string, isUnreadable: boolean, hint?: string) {
    super(message);
    this.name = 'ImportError';
    this.isUnreadable = isUnreadable;
    this.hint = hint;
  }
}

/**
 * Turns a list of models in the format of models.dev, parsed, into a catalog that `config.modelCatalog` loads.
 * A model with a price that has no exact meaning here is left out with a warning: a wrong price is worse than none.
 * Throws `ImportError`.
 */
export function importModelsDev(list: unknown, options: ImportOptions): ImportedCatalog {
  const parsed = listSchema.safeParse(list);
  if (!parsed.success) throw notAList(list, parsed.error);
  const warnings: string[] = [];
  const providers: CatalogText['providers'] = {};
  for (const [id, { models }] of wanted(parsed.data, options)) {
    const name = RENAMED[id] ?? id;
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

function wanted(
  list: Readonly<Record<string, Provider>>,
  { providers }: ImportOptions,
): [string, Provider][] {
  const all = sorted(list);
  if (providers === undefined) return all.filter(([id]) => KNOWN.has(id));
  const isNamed = (name: string, id: string): boolean => name === id || name === RENAMED[id];
  const unknown = providers.filter((name) => !all.some(([id]) => isNamed(name, id)));
  if (unknown.length > 0)
    throw new ImportError(
      `no providers matched ${unknown.map((name) => `\`${name}\``).join(', ')}`,
      true,
      `providers of the list: ${all.map(([id]) => id).join(', ')}`,
    );
  return all.filter(([id]) => providers.some((name) => isNamed(name, id)));
}

/** In an order that does not depend on the source's, so that two imports can be compared. */
function sorted<T>(record: Readonly<Record<string, T>>): [string, T][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
}

type Prices = CatalogText['providers'][string]['models'][string];

/** The prices of one model; undefined, with a warning, when one of them cannot be kept as it is. */
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
      warnings.push(`${where}.${member} is ${JSON.stringify(value)}, not a price: the model is left out`);
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

/** Newer lists have `tiers`; older ones one price for more than 200,000 tokens, which newer ones repeat. */
function tiersOf(cost: Costs, where: string, warnings: string[]): Prices['tiers'] | undefined {
  const { tiers, context_over_200k: over200k } = cost;
  const given = Array.isArray(tiers)
    ? (tiers as unknown[])
    : over200k === undefined || over200k === null
      ? []
      : [{ ...(over200k as object), tier: { type: 'context', size: 200_000 } }];
  const read: { contextOver: number; rates: RateTexts }[] = [];
  for (const [index, tier] of given.entries()) {
    const parsed = tierSchema.safeParse(tier);
    const contextOver = parsed.data?.tier.size;
    if (contextOver === undefined || read.some((other) => other.contextOver === contextOver)) {
      warnings.push(
        `${where}: cost.tiers.${index} is not one more tier by context length: the model is left out`,
      );
      return undefined;
    }
    const rates = ratesOf(tier as Costs, `${where}: cost.tiers.${index}`, warnings);
    if (rates === undefined) return undefined;
    read.push({ contextOver, rates });
  }
  return read.sort((a, b) => a.contextOver - b.contextOver);
}
