import { membersOf } from '../../../core/foreign.ts';
import { edit, elements, stringAt, valueAt } from '../../kernel/json/json-text.ts';
import { type NamedItem, unknownItem } from '../names/names.ts';
import { RpcError, resultMessage } from '../protocol/protocol.ts';
import { completeMembers } from '../protocol/results.ts';
import type { KeptResults, ResultPart } from '../result-limits/kept-results.ts';
import { READ_TOOL, READ_TOOL_DEFINITION } from '../result-limits/read-tool.ts';
import { RESULT_SCHEME } from '../result-limits/result-uri.ts';
import type { ClientCall } from './call.ts';
import { answerTool } from './own-tool.ts';

const READ = 'resources/read';

/** A list of tools for clients, as JSON texts, with the tool of the gateway. A gateway behind this one may list the same. */
export const withReadTool = (
  { session }: Pick<ClientCall, 'session'>,
  tools: readonly string[],
): readonly string[] =>
  session.keptResults === undefined ||
  tools.length === 0 ||
  tools.some((tool) => stringAt(tool, ['name']) === READ_TOOL)
    ? tools
    : [...tools, READ_TOOL_DEFINITION];

/** The same in the JSON text of a response: on the last page. */
export function listingReadTool(call: ClientCall, text: string): string {
  const span = valueAt(text, ['result', 'tools']);
  if (
    span === undefined ||
    text[span.start] !== '[' ||
    stringAt(text, ['result', 'nextCursor']) !== undefined
  )
    return text;
  const tools = elements(text, span.start).map(({ start, end }) => text.slice(start, end));
  const all = withReadTool(call, tools);
  return all === tools ? text : edit(text, [{ ...span, text: `[${all.join(',')}]` }]);
}

/**
 * Answers a request for a part of a kept result; returns false for any other item. Rules do not decide on it: the call was allowed,
 * and only its session finds what was kept. Throws `RpcError` for a resource that is not kept.
 */
export function readResult(call: ClientCall, item: NamedItem, kept: KeptResults): boolean {
  if (item.kind === 'tool') return item.name === READ_TOOL && runReadTool(call, kept);
  const { kind, name: uri } = item;
  if (kind !== 'resource' || !kept.isOwn(uri)) return false;
  const { message, log, meta, stream } = call;
  // Whoever knows the id of a result can read it in a session that callers without authentication share.
  log.resourceUri = SHOWN_URI;
  const part = kept.read(uri);
  if (typeof part !== 'object' || message.method !== READ) {
    const { code, message: text } = unknownItem(kind, uri);
    throw new RpcError(code, `${text}: ${whyNot(part)}`);
  }
  const contents = JSON.stringify([{ uri, mimeType: 'text/plain', text: textOf(part) }]);
  const complete = meta === undefined ? '' : `${completeMembers(READ)},`;
  stream.end(resultMessage(message.id ?? 'null', `{${complete}"contents":${contents}}`));
  return true;
}

/** Runs the tool. Returns false for a URI that the gateway behind this one may have created, whose tool has the same name. */
function runReadTool(call: ClientCall, kept: KeptResults): boolean {
  const { uri } = membersOf(call.message.params['arguments']);
  const isUri = typeof uri === 'string' && uri.startsWith(RESULT_SCHEME);
  if (isUri && !kept.isOwn(uri) && !call.session.options.prefixed) return false;
  const { log } = call;
  if (log.toolArguments !== undefined) log.toolArguments = { uri: SHOWN_URI };
  const part = isUri ? kept.read(uri) : undefined;
  if (typeof part === 'object') answerTool(call, READ_TOOL, [textOf(part)], false);
  else
    answerTool(
      call,
      READ_TOOL,
      [isUri ? whyNot(part) : `expected \`uri\` to be ${RESULT_SCHEME}…, as the cut result says`],
      true,
    );
  return true;
}

/** What logs have instead of a URI. */
const SHOWN_URI = 'agctl://results';

function textOf({ text, number, count, next }: ResultPart): string {
  const end = next === undefined ? 'the end of the result' : `go on with the resource ${next}`;
  return `${text}\n[agctl] Part ${number} of ${count}: ${end}.`;
}

function whyNot(part: ReturnType<KeptResults['read']>): string {
  if (part === undefined) return 'the gateway no longer keeps this result; call the tool again';
  if (typeof part === 'object') return 'parts of results are only read';
  return part === 2 ? 'the result has part 2 only' : `the result has parts 2 to ${part}`;
}
