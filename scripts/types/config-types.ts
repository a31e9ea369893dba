// The TypeScript type of a configuration, from its JSON Schema.
import { compile } from 'json-schema-to-typescript';
import { editorSchema } from '../../src/server/config/editor-schema.ts';

/** Text of src/library/config-types.ts. */
export async function configTypes(): Promise<string> {
  return compile(editorSchema(), 'GatewayConfig', {
    bannerComment: '// Generated from the schema of the configuration: npm run gen',
    additionalProperties: false,
    // As tuples, lists that programs compute would not fit.
    ignoreMinAndMaxItems: true,
    format: true,
    style: { singleQuote: true, printWidth: 110 },
  });
}
