import { randomUUID } from 'node:crypto';
import { elementsOf, parseJson } from '../../../../core/foreign.ts';
import type { Reply } from '../../../kernel/request/request-context.ts';
import { membersOf } from '../../json-members.ts';
import { InvalidRequest, json, reply, required } from './reply.ts';
import { argumentsOf, type Body, deltasOf, echoWords, flatText, textOf, wordsOf } from './words.ts';

/** `generateContent` of the Gemini API. */
export function generatedContent(body: Body, streaming: boolean): Reply {
  const { prompt, isToolResult } = promptOf(body);
  const tool = isToolResult ? undefined : forcedTool(body);
  const limit = membersOf(body['generationConfig'])?.['maxOutputTokens'];
  const output = echoWords(tool === undefined ? prompt : argumentsOf(prompt), limit);
  const head = { modelVersion: textOf(body['model']), responseId: randomUUID() };
  const end = {
    usageMetadata: {
      promptTokenCount: output.promptWords,
      candidatesTokenCount: output.words.length,
      totalTokenCount: output.promptWords + output.words.length,
    },
    ...head,
  };
  const finishReason = output.isCut ? 'MAX_TOKENS' : 'STOP';
  const candidate = (parts: readonly object[], more: object = {}): object => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  });
  const call = tool === undefined ? undefined : functionCall(tool, prompt);
  if (!streaming)
    return json({ ...candidate([call ?? { text: output.words.join(' ') }], { finishReason }), ...end });
  const parts = call === undefined ? deltasOf(output).map((text) => ({ text })) : [call];
  const events = [
    ...parts.map((part) => ({ ...candidate([part]), ...head })),
    { ...candidate([{ text: '' }], { finishReason }), ...end },
  ];
  return reply('text/event-stream', events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
}

/** `countTokens` of the Gemini API. */
export function geminiCountTokens(body: Body): Reply {
  const request = membersOf(body['generateContentRequest']) ?? body;
  return json({ totalTokens: wordsOf(promptOf(request).prompt).length });
}

/** The text of the last content, or the results of its tool calls. */
function promptOf(body: Body): { prompt: string; isToolResult: boolean } {
  const contents = required(body, 'contents');
  const last: unknown = Array.isArray(contents) ? contents.at(-1) : undefined;
  const parts = membersOf(last)?.['parts'];
  if (!Array.isArray(parts)) throw new InvalidRequest('invalid_type', "Invalid value for 'contents'.");
  const results = elementsOf(parts).flatMap((part) => membersOf(part)?.['functionResponse'] ?? []);
  const isToolResult = results.length > 0;
  const shown = results.map((result) => textOf(membersOf(result)?.['response']));
  return { prompt: isToolResult ? shown.join(' ') : flatText(parts), isToolResult };
}

/** The function that `toolConfig` requires: the first of those allowed, else the first of all. */
function forcedTool({ tools, toolConfig }: Body): string | undefined {
  const { mode, allowedFunctionNames: names } =
    membersOf(membersOf(toolConfig)?.['functionCallingConfig']) ?? {};
  if (mode !== 'ANY') return undefined;
  const declared = Array.isArray(tools) ? membersOf(tools[0])?.['functionDeclarations'] : undefined;
  const first: unknown = Array.isArray(declared) ? membersOf(declared[0])?.['name'] : undefined;
  const chosen: unknown = Array.isArray(names) ? names[0] : first;
  return typeof chosen === 'string' ? chosen : undefined;
}

const functionCall = (name: string, prompt: string): object => ({
  functionCall: { id: randomUUID(), name, args: parseJson(argumentsOf(prompt)) },
});
