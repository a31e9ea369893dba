import type { ChatRequest, Tool } from '../../../../src/server/llm/translation/chat.ts';
import { type Case, runCases } from './cases.ts';

interface AnswerCase extends Case {
  /** Tools of the client's request. */
  readonly tools?: readonly Tool[];
}

runCases<AnswerCase>('answers', ({ input, tools = [] }, from, to) => {
  const request: ChatRequest = {
    model: 'some-model',
    system: [],
    turns: [],
    tools,
    stream: false,
    streamUsage: false,
  };
  const answer = from.readResponse(input);
  // The Messages API has no time, so that the current one is written.
  return to.writeResponse({ ...answer, created: answer.created ?? 1 }, request);
});
