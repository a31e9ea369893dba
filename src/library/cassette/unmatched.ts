import { pathText } from '../../core/diagnostic.ts';
import { isRecord } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { byForm } from '../../core/redact.ts';
import { counted } from '../../core/render/counted.ts';
import { escapeControls } from '../../core/render/width.ts';
import { clientFormat } from '../../server/llm/request/endpoints.ts';
import { errorMessage } from '../../server/mcp/protocol/protocol.ts';
import { shown } from './compare.ts';
import type { Exchange } from './format.ts';
import { redactedByForm } from './redaction.ts';
import { type Asked, jsonOf, pathOf, rpcMethod, type Unmatched } from './tape.ts';

/** Why a request has no answer, with the nearest recorded one. What looks like a credential is redacted. */
export function explain({ asked, nearest, isKnownPath }: Unmatched, file: string): string {
  const call = escapeControls(byForm.text(callText(asked)));
  if (nearest === undefined) {
    const what = isKnownPath ? `other requests at ${pathOf(asked.target)} are` : 'nothing at this path is';
    return `${call} is not in the cassette ${file}: ${what} recorded`;
  }
  const { exchange, differences } = nearest;
  const most = LIMITS.cassetteShownDifferences;
  const lines = differences.slice(0, most).map((each) => {
    const { recorded, found } = shown({
      ...each,
      found: redactedByForm(each.found, String(each.path.at(-1))),
    });
    return `  ${escapeControls(pathText(each.path))}: recorded ${recorded}, asked ${found}`;
  });
  const more = differences.length > most ? [`  and ${differences.length - most} more`] : [];
  const title = `${call} is not in the cassette: ${file}:${exchange.line} is the nearest, with ${counted(differences.length, 'difference')}`;
  return [title, ...lines, ...more, 'Record it again, or ignore what may differ.'].join('\n');
}

/** Why a request gets no answer, until its client leaves. */
export const explainWaiting = (asked: Asked, { line }: Exchange, file: string): string =>
  `${escapeControls(byForm.text(callText(asked)))} waits: in ${file}:${line} the recorded client had left before an answer`;

function callText({ method, target, body }: Asked): string {
  const rpc = rpcMethod(body);
  return `${method} ${pathOf(target)}${rpc === undefined || rpc === '' ? '' : ` ${rpc}`}`;
}

/** An error in the format of the client: JSON-RPC, that of an API of models, or text. */
export function refusal(status: number, message: string, asked: Asked, headers: Headers): Response {
  const json = jsonOf(asked.body);
  if (rpcMethod(asked.body) !== undefined && isRecord(json)) {
    const { id } = json;
    const isId = typeof id === 'string' || typeof id === 'number';
    return jsonResponse(status, errorMessage(isId ? JSON.stringify(id) : 'null', NOT_RECORDED, message));
  }
  const path = pathOf(asked.target);
  if (!/^\/v\d/.test(path) && !/\/(?:chat\/completions|messages|responses|embeddings)$/.test(path))
    return new Response(`${message}\n`, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
  const error = { status, type: 'invalid_request_error', code: 'not_recorded', message };
  return jsonResponse(status, JSON.stringify(clientFormat({ path, headers }).errorBody(error)));
}

/** In the range that JSON-RPC leaves to servers. */
const NOT_RECORDED = -32_050;

const jsonResponse = (status: number, text: string): Response =>
  new Response(text, { status, headers: { 'content-type': 'application/json' } });
