import { elementsOf, isRecord } from '../../../../core/foreign.ts';
import type { ChatUsage } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { membersOf } from '../../json-members.ts';
import { tokenCount } from '../../usage.ts';

/**
 * Reads `usageMetadata`. `promptTokenCount` includes cached tokens, but not the results of tools that ran at the
 * provider; `candidatesTokenCount` does not include thoughts (Gemini API, "UsageMetadata").
 */
export function readUsage(usage: unknown): ChatUsage | undefined {
  if (!isRecord(usage)) return undefined;
  const input = count(usage['promptTokenCount']) + count(usage['toolUsePromptTokenCount']);
  const reasoning = count(usage['thoughtsTokenCount']);
  return {
    input,
    output: count(usage['candidatesTokenCount']) + reasoning,
    ...known('cachedInput', count(usage['cachedContentTokenCount'])),
    ...known('inputAudio', audio(usage['promptTokensDetails']) + audio(usage['toolUsePromptTokensDetails'])),
    ...known('cachedInputAudio', audio(usage['cacheTokensDetails'])),
    ...known('outputAudio', audio(usage['candidatesTokensDetails'])),
    ...known('reasoning', reasoning),
  };
}

export function writeUsage(usage: ChatUsage): Json {
  const { input, output, cachedInput, inputAudio, outputAudio, reasoning } = usage;
  const total = input + output;
  const visible = Math.max(0, output - (reasoning ?? 0));
  return {
    promptTokenCount: input,
    candidatesTokenCount: visible,
    totalTokenCount: total,
    ...known('cachedContentTokenCount', cachedInput ?? 0),
    ...known('thoughtsTokenCount', reasoning ?? 0),
    ...details('promptTokensDetails', input, inputAudio),
    ...details('candidatesTokensDetails', visible, outputAudio),
  };
}

const count = (value: unknown): number => tokenCount(value) ?? 0;

const known = (key: string, number: number): Record<string, number> =>
  number === 0 ? {} : { [key]: number };

/** The audio tokens in a list of counts by modality. */
function audio(list: unknown): number {
  return elementsOf(list)
    .map((item) => membersOf(item) ?? {})
    .filter(({ modality }) => modality === 'AUDIO')
    .reduce((sum, each) => sum + count(each['tokenCount']), 0);
}

function details(key: string, total: number, audioTokens = 0): Json {
  if (audioTokens === 0) return {};
  return {
    [key]: [
      { modality: 'TEXT', tokenCount: Math.max(0, total - audioTokens) },
      { modality: 'AUDIO', tokenCount: audioTokens },
    ],
  };
}
