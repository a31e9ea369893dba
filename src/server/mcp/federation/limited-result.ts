import type { RequestObserver } from '../../kernel/observer.ts';
import { BYTES_PER_TOKEN, tokensOf } from '../../kernel/token-estimate.ts';
import type { Target } from '../connection/target.ts';
import type { RpcMessage } from '../protocol/message.ts';
import type { McpFields } from '../request-fields.ts';
import { cutResult } from '../result-limits/cut-result.ts';
import { READ_TOOL } from '../result-limits/read-tool.ts';
import type { Session } from '../session/session.ts';

/** First revision with links in results: a client of an older one would refuse the whole result. Revisions compare as strings. */
const LINKS_SINCE = '2025-06-18';

/** The client's side of a call: `message` has the client's names. */
interface Caller {
  readonly session: Session;
  readonly message: RpcMessage;
  readonly log: McpFields;
  readonly observer: RequestObserver | undefined;
}

/**
 * Cuts the result of a tool to its limit (`maxResultTokens`), as JSON text of the response. `sent` is the call with the target's
 * names. Guardrails have checked the whole result, so what is kept of it is checked too.
 */
export function limitedResult(caller: Caller, { tools }: Target, sent: RpcMessage, text: string): string {
  if (sent.method !== 'tools/call') return text;
  const { name } = sent.params;
  const max = typeof name === 'string' ? tools?.maxResultTokens?.(name) : undefined;
  const cut = max === undefined ? undefined : cutResult(text, max);
  if (max === undefined || cut === undefined) return text;
  const { keptResults, version, options } = caller.session;
  const kept = keptResults?.keep(cut.rest, max * BYTES_PER_TOKEN);
  const [shown, total] = [tokensOf(cut.shown), tokensOf(cut.total)];
  caller.log.cutTokens = total - shown;
  const details = { tokens: total, shown, parts: kept?.count ?? 1 };
  caller.observer?.emit({ type: 'policyEvent', kind: 'mcp_result_cut', details }, { scope: 'mcp' });
  const about = `[agctl] This result is cut: about ${shown} of ${total} tokens are shown.`;
  if (kept === undefined) {
    const why = options.isStateless ? 'because the gateway has no sessions' : 'because it is too large';
    return cut.text([
      textBlock(
        `${about} The rest was not kept, ${why}: call the tool again with arguments that return less.`,
      ),
    ]);
  }
  const part = `part 2 of ${kept.count}`;
  const note = textBlock(
    `${about} It goes on in the resource ${kept.next} (${part}): read it with ${READ_TOOL} or resources/read, or call the tool again with arguments that return less.`,
  );
  const own = caller.message.params['name'];
  const link = {
    type: 'resource_link',
    uri: kept.next,
    name: `${typeof own === 'string' ? own : 'result'} (${part})`,
    mimeType: 'text/plain',
  };
  return cut.text(version >= LINKS_SINCE ? [note, link] : [note]);
}

const textBlock = (text: string): object => ({ type: 'text', text });
