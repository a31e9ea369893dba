import { RESULT_SCHEME } from './result-uri.ts';

/** The tool with which models read on in cut results: few clients let them read resources. */
export const READ_TOOL = 'gateway_read_result';

/** Its definition, as JSON text. */
export const READ_TOOL_DEFINITION = JSON.stringify({
  name: READ_TOOL,
  title: 'Read on in a result',
  description:
    'Returns the next part of a result of another tool that was cut, by the URI that the cut result names.',
  inputSchema: {
    type: 'object',
    properties: { uri: { type: 'string', description: `URI of the part: ${RESULT_SCHEME}…` } },
    required: ['uri'],
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
});
