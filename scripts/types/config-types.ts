// The TypeScript type of a configuration, from its JSON Schema.
import { compile } from 'json-schema-to-typescript';
import { editorSchema } from '../../src/server/config/editor-schema.ts';

/** Text of src/library/config-types.ts. */
export async function configTypes(): Promise<string> {
  return compile(withExamples(editorSchema()), 'GatewayConfig', {
    bannerComment: '// Generated from the schema of the configuration: npm run gen',
    additionalProperties: false,
    // As tuples, lists that programs compute would not fit.
    ignoreMinAndMaxItems: true,
    format: true,
    style: { singleQuote: true, printWidth: 110 },
  });
}

/** Any text is possible where a schema has examples (a variable, for one), and editors offer these. */
function withExamples<Schema>(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema), (_key, value) => {
    if (value?.type !== 'string' || !Array.isArray(value.examples)) return value;
    const names = value.examples.map((name: string) => `'${name}'`);
    return { ...value, tsType: [...names, '(string & {})'].join(' | ') };
  });
}
