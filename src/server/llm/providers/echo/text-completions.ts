import { randomUUID } from 'node:crypto';
import type { Reply } from '../../../kernel/request/request-context.ts';
import { usageOf, wantsUsage } from './chat-completions.ts';
import { dataStream, json, now, required } from './reply.ts';
import { type Body, deltasOf, echoWords, textOf, textsOf } from './words.ts';

/** One choice for each prompt of a list. */
export function textCompletion(body: Body, streaming: boolean): Reply {
  const outputs = textsOf(required(body, 'prompt')).map((prompt) => echoWords(prompt, body['max_tokens']));
  const head = {
    id: `cmpl-${randomUUID()}`,
    object: 'text_completion',
    created: now(),
    model: textOf(body['model']),
  };
  const choice = (index: number, text: string, finish: string | null): object => ({
    text,
    index,
    logprobs: null,
    finish_reason: finish,
  });
  const finishOf = (isCut: boolean): string => (isCut ? 'length' : 'stop');
  if (!streaming) {
    const choices = outputs.map(({ words, isCut }, index) => choice(index, words.join(' '), finishOf(isCut)));
    return json({ ...head, choices, usage: usageOf(outputs) });
  }
  const choices = outputs.flatMap((output, index) => [
    ...deltasOf(output).map((text) => choice(index, text, null)),
    choice(index, '', finishOf(output.isCut)),
  ]);
  return dataStream([
    ...choices.map((each) => ({ ...head, choices: [each] })),
    ...(wantsUsage(body) ? [{ ...head, choices: [], usage: usageOf(outputs) }] : []),
  ]);
}
