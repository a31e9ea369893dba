import { resultMessage } from '../protocol/protocol.ts';
import { completeMembers } from '../protocol/results.ts';
import type { ClientCall } from './call.ts';

/** Answers a call of a tool of the gateway. */
export function answerTool(call: ClientCall, name: string, texts: readonly string[], isError: boolean): void {
  const { message, log, meta, stream } = call;
  log.resourceType = 'tool';
  log.tool = name;
  if (isError) log.isToolError = true;
  const content = texts.map((text) => ({ type: 'text', text }));
  const complete = meta === undefined ? '' : `${completeMembers('tools/call')},`;
  const result = `{${complete}"content":${JSON.stringify(content)}${isError ? ',"isError":true' : ''}}`;
  stream.end(resultMessage(message.id ?? 'null', result));
}
