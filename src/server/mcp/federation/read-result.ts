import { type NamedItem, unknownItem } from '../names/names.ts';
import { RpcError, resultMessage } from '../protocol/protocol.ts';
import { completeMembers } from '../protocol/results.ts';
import type { KeptResults } from '../result-limits/kept-results.ts';
import type { ClientCall } from './call.ts';

const READ = 'resources/read';

/**
 * Answers a request for a part of a kept result; returns false for any other resource. Rules do not decide on it: the call was
 * allowed, and only its session finds what was kept. Throws `RpcError` for a part that is not kept.
 */
export function readResult(call: ClientCall, { kind, name: uri }: NamedItem, kept: KeptResults): boolean {
  if (kind !== 'resource' || !kept.isOwn(uri)) return false;
  const { message, log, meta, stream } = call;
  // Whoever knows the id of a result can read it in a session that callers without authentication share.
  log.resourceUri = 'agctl://results';
  const part = kept.read(uri);
  if (typeof part !== 'object' || message.method !== READ) {
    const { code, message: text } = unknownItem(kind, uri);
    throw new RpcError(code, `${text}: ${whyNot(part)}`);
  }
  const { number, count, next } = part;
  const end = next === undefined ? 'the end of the result' : `go on with the resource ${next}`;
  const text = `${part.text}\n[agctl] Part ${number} of ${count}: ${end}.`;
  const contents = JSON.stringify([{ uri, mimeType: 'text/plain', text }]);
  const complete = meta === undefined ? '' : `${completeMembers(READ)},`;
  stream.end(resultMessage(message.id ?? 'null', `{${complete}"contents":${contents}}`));
  return true;
}

function whyNot(part: ReturnType<KeptResults['read']>): string {
  if (part === undefined) return 'the gateway no longer keeps this result; call the tool again';
  if (typeof part === 'object') return 'parts of results are only read';
  return part === 2 ? 'the result has part 2 only' : `the result has parts 2 to ${part}`;
}
