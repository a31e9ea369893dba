import { resolve } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { parseJson, readJsonFile } from '../../../core/json-file.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { type CatalogDocument, catalogSchema, PriceCatalog } from './catalog.ts';

/** A reference to a price catalog: a file, or inline as JSON text or an object. */
export const catalogReferenceSchema = z.union([
  z.strictObject({
    file: z.string().min(1).describe('JSON file that contains the catalog.'),
  }),
  z.strictObject({
    inline: z
      .union([z.string().min(1), z.record(z.string(), z.json())])
      .describe('The catalog, as JSON text or an object.'),
  }),
]);

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
      const [issue] = parsed.error.issues;
      at.report({
        code: 'AGW0104',
        message: 'the price catalog is not valid',
        notes: [`${issue?.path.join('.') || 'at the top'}: ${issue?.message}`],
        notesQuoteFile: true,
      });
    } catch (error) {
      at.report({ code: 'AGW0005', message: `the price catalog cannot be read: ${messageOf(error)}` });
    }
    return [];
  });
  return new PriceCatalog(documents);
}

function documentOf(reference: z.output<typeof catalogReferenceSchema>, folder: string): unknown {
  if ('file' in reference) return readJsonFile(resolve(folder, reference.file), LIMITS.priceCatalogBytes);
  return typeof reference.inline === 'string' ? parseJson(reference.inline, '`inline`') : reference.inline;
}
