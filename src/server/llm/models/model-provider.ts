import { z } from 'zod';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { nearest } from '../../../core/suggest.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { providerFormatOf } from '../formats/index.ts';
import { customProvider, customProviderSchema } from '../providers/custom.ts';
import { findProvider, NO_COPILOT, providerKinds, providerNames } from '../providers/index.ts';
import { type ProviderParams, paramsSchema } from '../providers/params.ts';
import type { ProviderFormat, ProviderKind } from '../providers/provider.ts';

export const fieldsSchema = z.record(nonEmpty, z.json());

const customSchema = z.strictObject({ custom: customProviderSchema });

/** The name of a kind of provider. Those that do not exist are reported later, with the ones that do. */
const kindName = nonEmpty
  .refine((name) => name.toLowerCase() !== 'copilot', {
    error: `the provider \`copilot\` is not supported: ${NO_COPILOT}`,
  })
  .meta({ examples: [...providerNames] });

/** `provider` of a model. */
export const modelProviderSchema = z
  .union([
    kindName,
    z.strictObject({ reference: nonEmpty.describe('Name of an entry of `llm.providers`.') }),
    customSchema,
  ])
  .describe(
    'Kind of provider, such as `oaiCompat` or `echo`, a `custom` description of one, or a reference to an entry of `llm.providers`.',
  );

export const providerEntrySchema = z.lazy(() =>
  mapping('A provider shared by several models.', {
    name: nonEmpty.describe('Name for references from models.'),
    provider: z
      .union([kindName, customSchema])
      .describe('Kind of provider, or a `custom` description of one.'),
    params: paramsSchema.prefault({}),
    defaults: fieldsSchema.default({}).describe('Same as in a model; values of the model take precedence.'),
    overrides: fieldsSchema.default({}).describe('Same as in a model; values of the model take precedence.'),
  }),
);

type ModelProvider = z.output<typeof modelProviderSchema>;
export type ProviderEntry = z.output<typeof providerEntrySchema>;

/** The entry that a model refers to; undefined if it names a kind itself, or an entry that does not exist. */
export function entryOf<T extends { readonly name: string }>(
  provider: ModelProvider,
  entries: readonly T[],
): T | undefined {
  if (typeof provider === 'string' || !('reference' in provider)) return undefined;
  return entries.find(({ name }) => name === provider.reference);
}

/** The kind of provider of a model; undefined if it is unknown. */
export function kindOf(provider: ModelProvider, entries: readonly ProviderEntry[]): ProviderKind | undefined {
  if (typeof provider === 'string') return findProvider(provider);
  if ('custom' in provider) return customProvider(provider.custom);
  const entry = entryOf(provider, entries);
  return entry === undefined ? undefined : kindOf(entry.provider, []);
}

/** Name of a model's provider for people: its kind, or the entry that it refers to. */
export function shownProvider(provider: ModelProvider): string {
  if (typeof provider === 'string') return provider;
  return 'custom' in provider ? 'custom' : provider.reference;
}

/** Reports an unknown provider of a model. That of a shared entry is reported once, at the entry. */
export function reportUnknown(
  provider: ModelProvider,
  entries: readonly ProviderEntry[],
  context: CompileContext,
): void {
  if (typeof provider === 'string') reportUnknownKind(provider, context);
  else if ('reference' in provider && entryOf(provider, entries) === undefined) {
    const known = entries.map(({ name }) => `\`${name}\``).join(', ') || 'none';
    context.at('reference').report({
      code: 'AGW0107',
      message: `unknown provider entry \`${provider.reference}\``,
      help: `entries of llm.providers: ${known}`,
    });
  }
}

/** Reports entries of `llm.providers` with an unknown provider or params it does not read, whether or not a model uses them. */
export function reportUnknownKinds(entries: readonly ProviderEntry[], context: CompileContext): void {
  for (const [index, { provider, params }] of entries.entries()) {
    const kind = kindOf(provider, []);
    if (kind === undefined) reportUnknown(provider, [], context.at(index, 'provider'));
    else reportUnreadParams(kind, params, context.at(index, 'params'));
  }
}

/** Members of `params` that every provider reads that calls a server. */
const COMMON_PARAMS: readonly (keyof ProviderParams)[] = ['apiKey', 'baseUrl', 'responses', 'messages'];

/** The formats of a provider, with those chats passed or translated for which `params` say it. Reports a provider without any left. */
export function chosenFormats(
  formats: readonly ProviderFormat[],
  params: ProviderParams,
  context: CompileContext,
): readonly ProviderFormat[] {
  const wishes = (['responses', 'messages'] as const).map((type) => [type, params[type]] as const);
  const translated = new Set<string>(wishes.flatMap(([type, wish]) => (wish === 'translate' ? type : [])));
  const passed = wishes.flatMap(([type, wish]) =>
    wish === 'pass' && formats.every((each) => each.type !== type) ? [{ type }] : [],
  );
  const chosen = [...formats.filter(({ type }) => !translated.has(type)), ...passed];
  if (translated.size > 0 && chosen.every(({ type }) => providerFormatOf(type)?.chat === undefined))
    for (const key of translated)
      context.at(key).report({
        code: 'AGW0105',
        message: `\`${key}\`: the provider has no other API for chats that they could be translated to`,
        help: `remove it, or write \`${key}: pass\``,
        atKey: true,
      });
  return chosen;
}

/** Warns of members of `params` that the provider does not read: most often those of another provider. */
export function reportUnreadParams(
  kind: ProviderKind,
  params: ProviderParams,
  context: CompileContext,
): void {
  const read = new Set([
    'model',
    'tokenize',
    ...(kind.answer === undefined ? COMMON_PARAMS : []),
    ...(kind.params ?? []),
  ]);
  for (const [key, value] of Object.entries(params)) {
    if (value === undefined || read.has(key)) continue;
    const readers = providerKinds.filter((each) => each.params?.some((param) => param === key));
    const names = readers.map((each) => `\`${each.key}\``).join(', ');
    context.at(key).report({
      code: 'AGW0105',
      severity: 'warning',
      message: `\`${key}\` has no effect for the provider \`${kind.key}\``,
      help: names === '' ? 'remove it' : `remove it: it is a setting of ${names}`,
      atKey: true,
    });
  }
}

function reportUnknownKind(name: string, context: CompileContext): void {
  const near = nearest(name, providerNames);
  context.report({
    code: 'AGW0104',
    message: `unknown provider \`${name}\``,
    ...(near === undefined ? {} : { help: `a provider with a similar name exists: \`${near}\`` }),
    notes: [`providers: ${providerNames.join(', ')}, or a description: {custom: {formats: […]}}`],
  });
}
