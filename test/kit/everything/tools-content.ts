import { type CallToolResult, type ContentBlock, fromJsonSchema } from '@modelcontextprotocol/server';
import { pngPixel, wavSilence } from './media.ts';
import type { Fixture } from './server.ts';

/** A tool result that holds one line of text. */
export function textResult(text: string): CallToolResult {
  return { content: [{ type: 'text', text }] };
}

const image: ContentBlock = { type: 'image', data: pngPixel, mimeType: 'image/png' };
const audio: ContentBlock = { type: 'audio', data: wavSilence, mimeType: 'audio/wav' };

function embedded(uri: string, mimeType: string, text: string): ContentBlock {
  return { type: 'resource', resource: { uri, mimeType, text } };
}

const fixedContent: Record<string, { description: string; content: ContentBlock[] }> = {
  test_simple_text: {
    description: 'Answers with one block of text',
    content: [{ type: 'text', text: 'plain text from the fixture' }],
  },
  test_image_content: { description: 'Answers with a PNG', content: [image] },
  test_audio_content: { description: 'Answers with a WAV', content: [audio] },
  test_embedded_resource: {
    description: 'Answers with a resource inside the result',
    content: [embedded('test://embedded-resource', 'text/plain', 'text that came inside a tool result')],
  },
  test_multiple_content_types: {
    description: 'Answers with text, an image and a resource, in this order',
    content: [
      { type: 'text', text: 'three kinds of content follow each other' },
      image,
      embedded(
        'test://mixed-content-resource',
        'application/json',
        JSON.stringify({ kind: 'mixed', parts: 3 }),
      ),
    ],
  },
};

// The keywords are the point: a relay that rebuilds schemas instead of passing them on loses some of them.
const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'postal',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    reachBy: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { reachBy: { const: 'phone' } }, required: ['reachBy'] },
  // biome-ignore lint/suspicious/noThenProperty: `then` is the JSON Schema keyword
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

const mirroredSchema = {
  type: 'object',
  properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
  required: ['region'],
};

/** Tools whose answer depends on their arguments alone. */
export function addContentTools({ server }: Fixture): void {
  for (const [name, { description, content }] of Object.entries(fixedContent)) {
    server.registerTool(name, { description }, () => ({ content }));
  }
  server.registerTool('test_error_handling', { description: 'Fails on every call' }, () => {
    throw new Error('this tool fails on purpose');
  });
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Has an input schema with 2020-12 keywords', inputSchema: fromJsonSchema(schema2020) },
    (input) => textResult(JSON.stringify(input)),
  );
  server.registerTool(
    'test_mirrored_header',
    {
      description: 'Has a parameter that 2026-07-28 clients repeat in the Mcp-Param-Region header',
      inputSchema: fromJsonSchema<{ region: string }>(mirroredSchema),
    },
    ({ region }) => textResult(`region ${region}`),
  );
}
