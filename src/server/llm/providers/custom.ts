import { z } from 'zod';
import { mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { formatKeys } from '../formats/index.ts';
import { defineProvider, type ProviderKind } from './provider.ts';

export const customProviderSchema = z.lazy(() =>
  mapping('A provider described by the formats of its API. Needs `params.baseUrl`.', {
    model: nonEmpty
      .optional()
      .describe(
        'Model name sent to the provider instead of the requested name, unless `params.model` is set.',
      ),
    providerOverride: nonEmpty
      .optional()
      .describe('Name of the provider in telemetry and price catalogs. Default: `custom`.'),
    formats: z
      .array(
        z.strictObject({
          type: z.enum(formatKeys).describe('Wire format of calls.'),
          path: z
            .string()
            .regex(/^\/[^\s?#]*$/, { error: 'expected a path such as `/api/chat`, without a query' })
            .optional()
            .describe(
              'Path of these calls at the host of `baseUrl`. Default: that of the format, below `baseUrl`.',
            ),
        }),
      )
      .min(1)
      .describe(
        'Calls that the provider supports, preferred first. Chats in other formats are translated to the first format that a translation exists for.',
      ),
  }),
);

/** The provider kind of a `custom` description. */
export function customProvider({
  model,
  providerOverride,
  formats,
}: z.output<typeof customProviderSchema>): ProviderKind {
  return defineProvider({
    key: 'custom',
    aliases: [],
    telemetryName: providerOverride ?? 'custom',
    baseUrl: undefined,
    ...(model === undefined ? {} : { model }),
    formats: formats.map(({ type, path }) => ({ type, ...(path && { path }) })),
  });
}
