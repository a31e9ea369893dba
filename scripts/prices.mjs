// `npm run prices`: writes prices/catalog.json, the prices that are built in, from the price list of @pydantic/genai-prices. To
// update them: `npm install --save-dev --save-exact @pydantic/genai-prices@latest`, then this, then read the difference.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findProvider } from '@pydantic/genai-prices';
import { root } from './run.mjs';

/** Providers of the list, by the names that they have in telemetry here. */
const PROVIDERS = {
  anthropic: 'anthropic',
  'aws.bedrock': 'aws',
  azure: 'azure',
  baseten: 'baseten',
  cerebras: 'cerebras',
  cohere: 'cohere',
  deepseek: 'deepseek',
  fireworks: 'fireworks',
  'gcp.gemini': 'google',
  'gcp.vertex_ai': 'google',
  groq: 'groq',
  mistral: 'mistral',
  openai: 'openai',
  openrouter: 'openrouter',
  togetherai: 'together',
  xai: 'x-ai',
};

/** Rates of a catalog, by their names in the list. */
const RATES = {
  input_mtok: 'input',
  output_mtok: 'output',
  cache_read_mtok: 'cacheRead',
  cache_write_mtok: 'cacheWrite',
  cache_write_1h_mtok: 'cacheWrite1h',
  output_reasoning_mtok: 'reasoning',
  input_audio_mtok: 'inputAudio',
  output_audio_mtok: 'outputAudio',
};

/**
 * A model with one of these costs more than its tokens, or tokens of media that its provider may not report: no price is better
 * than one that is far too low.
 */
const NOT_BY_TOKEN = [
  ...['requests_kcount', 'input_text_messages_kcount', 'output_citation_mtok'],
  ...['output_image_mtok', 'output_video_mtok', 'audio_hours', 'input_audio_hours'],
];
const OF_MEDIA = /image|tts|transcribe|whisper|voice|ocr/;

/** The catalog as text. `date` decides between prices that begin on different days. */
export function pricesText(date) {
  const catalog = {
    source: `@pydantic/genai-prices ${versionOf('@pydantic/genai-prices')}`,
    date,
    providers: Object.fromEntries(
      Object.entries(PROVIDERS).map(([name, id]) => [name, { models: modelsOf(id, date) }]),
    ),
  };
  // One model each line, so that an update can be read.
  return `${JSON.stringify(catalog, undefined, 1).replace(/\n {5,}(?=\S)|(?<=[^\n])\n {4}(?=\})/g, ' ')}\n`;
}

function modelsOf(id, date) {
  const provider = findProvider({ providerId: id });
  if (provider?.id !== id) throw new Error(`the price list has no provider ${id}`);
  const own = provider.models.flatMap(({ id: model, match, prices }) => {
    // Without a price of its own, a model would get that of a shorter name.
    const found = (OF_MEDIA.test(model) ? undefined : pricesOf(prices, date)) ?? {};
    return patternsOf(match).map((pattern) => [pattern, found]);
  });
  // Azure sells models of others at their prices.
  const others = (provider.fallback_model_providers ?? []).map((each) => modelsOf(each, date));
  const all = Object.assign({}, ...others.toReversed(), Object.fromEntries(own.toReversed()));
  return Object.fromEntries(Object.entries(all).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * The names that a rule matches, with `*` at the beginning or end, of which the longest counts here. Expressions are of names
 * with a date, of those whose next part is a number, and of what is excluded because it has a longer name of its own.
 */
function patternsOf(rule) {
  const [[kind, value]] = Object.entries(rule);
  if (kind === 'or') return value.flatMap(patternsOf);
  if (kind === 'equals') return [value];
  if (kind === 'starts_with') return [`${value}*`];
  if (kind === 'ends_with') return [`*${value}`];
  if (kind === 'contains') return [`*${value}*`];
  if (kind === 'and') return value.filter((each) => !each.regex?.startsWith('^(?!')).flatMap(patternsOf);
  const [, name, rest] = /^\^([\w./\\-]+?-)(\\d.*)$/.exec(value) ?? [];
  if (rest === undefined) throw new Error(`the rule ${value} has a new form`);
  const text = name.replaceAll('\\', '');
  return rest === '\\d' ? [...'0123456789'].map((digit) => `${text}${digit}*`) : [`${text}20*`];
}

/** The prices on a day, as in a catalog; undefined if they are not known, or not by token. */
function pricesOf(given, date) {
  const all = Array.isArray(given) ? given : [{ prices: given }];
  const ofDay = all.findLast(({ constraint }) => constraint === undefined || constraint.start_date <= date);
  // Of prices that differ by the time of the day, the highest: a budget is never exceeded.
  const ofHours = all.filter(({ constraint }) => constraint?.start_time !== undefined);
  const [{ prices } = {}] = [ofDay, ...ofHours].toSorted(
    (one, other) => (other?.prices.output_mtok ?? 0) - (one?.prices.output_mtok ?? 0),
  );
  if (prices === undefined || NOT_BY_TOKEN.some((name) => prices[name] !== undefined)) return undefined;
  const rates = {};
  const tiers = new Map();
  for (const [name, kind] of Object.entries(RATES)) {
    const price = prices[name];
    if (price === undefined) continue;
    rates[kind] = rateText(typeof price === 'number' ? price : price.base);
    for (const { start, price: higher } of price.tiers ?? [])
      tiers.set(start, { ...tiers.get(start), [kind]: rateText(higher) });
  }
  if (rates.input === undefined && rates.output === undefined) return undefined;
  const ordered = [...tiers].sort(([one], [other]) => one - other);
  return {
    rates,
    ...(ordered.length > 0 && {
      tiers: ordered.map(([contextOver, higher]) => ({ contextOver, rates: higher })),
    }),
  };
}

/** At most six decimals, as rates of a catalog have. */
const rateText = (price) => String(Number(price.toFixed(6)));

function versionOf(name) {
  const entry = import.meta.resolve(name);
  const folder = entry.slice(0, entry.lastIndexOf(`/${name}/`) + name.length + 2);
  return JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')).version;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [date = new Date().toISOString().slice(0, 10)] = process.argv.slice(2);
  writeFileSync(join(root, 'prices', 'catalog.json'), pricesText(date));
}
