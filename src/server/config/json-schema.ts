import { z } from 'zod';
import { configSchema } from './schema.ts';

/** JSON Schema (draft 7, which editors' YAML support knows) of a configuration file, as an object. */
export function configJsonSchema(): object {
  // 'input': what a person writes, where everything with a default may be left out.
  return z.toJSONSchema(configSchema, { io: 'input', target: 'draft-7', unrepresentable: 'any' });
}
