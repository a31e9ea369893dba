import { fileURLToPath } from 'node:url';
import { LIMITS } from '../../../core/limits.ts';
import { PACKAGE_ROOT } from '../../../core/package-root.ts';
import { readJsonFile } from '../../kernel/files/json-file.ts';
import type { BuiltInPrices } from './catalog-schema.ts';
import { PriceTable } from './price-table.ts';

/**
 * Batches cost one half of other calls: OpenAI ("Batch API": 50% cost discount), Anthropic ("Batch processing": 50% of the
 * standard API prices), Amazon Bedrock and Vertex AI (50% on batch inference). No public price list used here says so
 * for each model; `batch` of a catalog replaces it.
 */
export const BATCH_DIVISOR = 2n;

let table: PriceTable | undefined;

/** The prices that come with the package (`npm run prices`). Read when the first of them is needed, in some ms. */
export function builtInPrices(): PriceTable {
  table ??= new PriceTable([readBuiltInPrices()]);
  return table;
}

function readBuiltInPrices(): BuiltInPrices {
  const file = fileURLToPath(new URL('prices/catalog.json', PACKAGE_ROOT));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a file of the package, whose form a test checks
  return readJsonFile(file, LIMITS.priceCatalogBytes) as BuiltInPrices;
}
