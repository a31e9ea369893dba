import { isRecord, jsonIn, membersOf } from '../../../core/foreign.ts';
import { edit, valueAt } from '../../kernel/json/json-text.ts';
import { parseMessage, type RpcMessage } from '../protocol/message.ts';

/** The tools that the gateway offers instead of all others. */
export const SEARCH_TOOL = 'search_tools';
export const CALL_TOOL = 'call_tool';

/** Characters of a query: far more than a model writes. */
const QUERY_CHARACTERS = 1_000;

/** Arguments that a model has written wrongly. The message says how to write them, because models read it. */
export class BadArguments extends Error {}

/**
 * Definitions of both tools, as JSON texts. `servers` are the names of those whose tools the caller may use.
 *
 * The description decides how well searches work: a model that writes the words of its user finds fewer tools than one that
 * writes those of the service (measured in test/interop/tool-search).
 */
export function metaTools(
  { results, mostResults }: { readonly results: number; readonly mostResults: number },
  servers: readonly string[],
): string[] {
  const from = servers.length === 0 ? '' : ` Servers: ${servers.join(', ')}.`;
  return [
    {
      name: SEARCH_TOOL,
      title: 'Search tools',
      description: `Finds tools by words and returns the best matches with their input schemas; ${CALL_TOOL} calls them. Only few tools are listed, and many more can be found: search before you conclude that there is no tool for a task.${from}`,
      inputSchema: {
        type: 'object',
        properties: {
          query: {
            type: 'string',
            description:
              'Verb and nouns as the documentation of the service would name the operation, with other names for them: "create review comment pull request", "delete remove gist snippet".',
          },
          limit: {
            type: 'integer',
            minimum: 1,
            maximum: mostResults,
            description: `Number of tools to return. Default: ${results}.`,
          },
        },
        required: ['query'],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    {
      name: CALL_TOOL,
      title: 'Call a tool',
      description: `Calls a tool that ${SEARCH_TOOL} has found.`,
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: `Name of the tool, as ${SEARCH_TOOL} returned it.` },
          arguments: {
            type: 'object',
            description: 'Arguments of the tool, as its inputSchema says.',
            additionalProperties: true,
          },
        },
        required: ['name'],
      },
    },
  ].map((tool) => JSON.stringify(tool));
}

/** Reads the arguments of `search_tools`. Throws `BadArguments`. */
export function readSearch(
  args: unknown,
  { results, mostResults }: { readonly results: number; readonly mostResults: number },
): { query: string; limit: number } {
  const { query, limit = results } = membersOf(args);
  if (typeof query !== 'string' || query.trim() === '')
    throw new BadArguments(
      'expected `query` to be words that say what the tool should do, as in "create issue"',
    );
  const count = Number(limit);
  if (!Number.isInteger(count) || count < 1)
    throw new BadArguments(`expected \`limit\` to be a whole number from 1 to ${mostResults}`);
  return { query: query.slice(0, QUERY_CHARACTERS), limit: Math.min(count, mostResults) };
}

/**
 * The call of a tool that `call_tool` stands for, as if the client had sent it: everything that follows sees only that.
 * Metadata stays, and so do the members that ask for a task. Throws `BadArguments`, and `RpcError` as for any other message.
 */
export function innerCall({ text, params }: RpcMessage): RpcMessage {
  const { name, arguments: inner, ...others } = membersOf(params['arguments']);
  const [other] = Object.keys(others);
  const form = 'expected {"name": "…", "arguments": {…}}';
  if (typeof name !== 'string' || name === '')
    throw new BadArguments(`${form} with the name of a tool that ${SEARCH_TOOL} has found`);
  if (other !== undefined)
    throw new BadArguments(`${form}: put ${JSON.stringify(other.slice(0, 64))} into "arguments"`);
  const nameAt = valueAt(text, ['params', 'name']);
  const argumentsAt = valueAt(text, ['params', 'arguments']);
  if (nameAt === undefined || argumentsAt === undefined) throw new BadArguments(form);
  return parseMessage(
    edit(text, [
      { ...nameAt, text: JSON.stringify(name) },
      { ...argumentsAt, text: argumentsText(text, inner) },
    ]),
  );
}

/** The arguments as they were sent: numbers keep their digits. Some models write the object as a string with JSON. */
function argumentsText(text: string, value: unknown): string {
  if (typeof value === 'string' && isRecord(jsonIn(value))) return value;
  const span = valueAt(text, ['params', 'arguments', 'arguments']);
  return span === undefined ? '{}' : text.slice(span.start, span.end);
}
