import { z } from 'zod';

/** A segment of a path. `mcp` and `sse` end the paths of endpoints themselves. Clients of other gateways have paths with `_`. */
const NAME = /^(?!(?:mcp|sse)$)[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?$/;
const LONGEST_NAME = 63;

export const isBundleName = (name: string): boolean => name.length <= LONGEST_NAME && NAME.test(name);

const patterns = z.array(z.string().min(1)).min(1);

/** Settings of bundles that are expressions of the request phase. */
export const bundleRequestExpressions = ['mcp.bundles[].when'] as const;

/** `mcp.bundles[]`. Names of items are those that clients see. */
export const bundlesSchema = z
  .array(
    z
      .strictObject({
        name: z
          .string()
          .max(LONGEST_NAME)
          .regex(NAME, {
            error: 'expected letters, digits, `-` and `_`, and neither `mcp` nor `sse`',
          })
          .describe('Name of the bundle, and the last segment of its path, as in `/mcp/NAME`.'),
        tools: patterns
          .optional()
          .describe(
            'Tools of the bundle, by the names that clients see; `*` matches any characters. Default: all of its `targets`.',
          ),
        targets: patterns
          .optional()
          .describe(
            'Names of targets whose prompts, resources and, unless `tools` says which, tools belong to the bundle; `*` matches any characters. Without it, the bundle has no prompts and resources.',
          ),
        when: z
          .string()
          .optional()
          .describe(
            'CEL expression over the request: only callers for whom it is true have the bundle. They get it at the path of the route too; of several, the first. If a bundle has it, nothing is there for callers without a bundle.',
          ),
        instructions: z
          .string()
          .optional()
          .describe('What models are told about the bundle, instead of the instructions of its targets.'),
        descriptions: z
          .record(z.string().min(1), z.string())
          .default({})
          .describe('Texts that replace the descriptions of tools, by the names that clients see.'),
      })
      .refine(({ tools, targets }) => (tools ?? targets) !== undefined, {
        error: 'expected `tools`, `targets` or both',
      })
      .describe('A set of tools with a path of its own.'),
  )
  .describe(
    'Sets of tools over all targets, each with a path of its own. What is not in a bundle is neither listed nor called there. Without `when`, the path of the route has everything: `mcpAuthorization` decides what callers may use.',
  );

export type BundleConfig = z.output<typeof bundlesSchema>[number];
