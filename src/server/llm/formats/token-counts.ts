import { type Members, membersOf } from '../json-members.ts';
import { fieldsOf, requireList } from './counted-fields.ts';
import { type AnswerShape, defineFormat } from './format.ts';
import { geminiApi } from './gemini-api.ts';
import { generateContent } from './generate-content/index.ts';
import { anthropicApi, messages } from './messages/index.ts';

/** An answer that is one number. */
function countIn(api: string, member: string): AnswerShape {
  const has = (value: Members): boolean => typeof value[member] === 'number';
  return { api, has, isAnswer: has };
}

/** Counting the tokens of a message without sending it, which Anthropic does not charge for. */
export const tokenCount = defineFormat({
  ...anthropicApi,
  key: 'anthropicTokenCount',
  paths: ['/messages/count_tokens'],
  routeType: 'AnthropicTokenCount',
  isRoutable: true,
  operation: 'other',
  hasNoText: true,
  hasOnlyData: true,
  isFree: true,
  promptFields: messages.promptFields ?? [],
  tokenCount: {
    parts(body) {
      requireList(body, 'messages');
      return fieldsOf(body, ['system', 'messages', 'tools']);
    },
    response: (count) => ({ input_tokens: count }),
  },
  shape: countIn('the Token Counting API', 'input_tokens'),
  // The `input_tokens` of its response are the result, not usage.
  report: () => ({}),
  usage: () => undefined,
  output: () => undefined,
});

/** `countTokens` of the Gemini API, which Google does not charge for. */
export const geminiCountTokens = defineFormat({
  ...geminiApi,
  key: 'geminiCountTokens',
  paths: [],
  methods: { countTokens: { stream: false } },
  operation: 'other',
  hasNoText: true,
  hasOnlyData: true,
  isFree: true,
  promptFields: generateContent.promptFields ?? [],
  // Gemini API, "countTokens": the contents, or a whole request in place of them.
  tokenCount: {
    parts(body) {
      const whole = membersOf(body.get('generateContentRequest') ?? body.get('generate_content_request'));
      if (whole !== undefined) return whole;
      requireList(body, 'contents');
      return fieldsOf(body, ['contents', 'systemInstruction', 'system_instruction', 'tools']);
    },
    response: (count) => ({ totalTokens: count }),
  },
  shape: countIn("the Gemini API's `countTokens`", 'totalTokens'),
  // The tokens in its response are the result, not usage.
  report: () => ({}),
  usage: () => undefined,
  output: () => undefined,
});
