import type { Reply } from '../../../kernel/request/request-context.ts';
import { dataStream, json, text } from './reply.ts';
import { type Body, deltasOf, echoWords, textOf } from './words.ts';

/** Repeats `prompt`, because a recording cannot be repeated as text. */
export function transcription(body: Body, streaming: boolean): Reply {
  const output = echoWords(textOf(body['prompt'] ?? 'The recording was received.'), undefined);
  const said = output.words.join(' ');
  const usage = {
    type: 'tokens',
    input_tokens: output.promptWords,
    input_token_details: { text_tokens: output.promptWords, audio_tokens: 0 },
    output_tokens: output.words.length,
    total_tokens: output.promptWords + output.words.length,
  };
  if (streaming)
    return dataStream([
      ...deltasOf(output).map((delta) => ({ type: 'transcript.text.delta', delta })),
      { type: 'transcript.text.done', text: said, usage },
    ]);
  switch (body['response_format']) {
    case 'text':
      return text(`${said}\n`);
    case 'srt':
      return text(`1\n00:00:00,000 --> 00:00:01,000\n${said}\n\n`);
    case 'vtt':
      return text(`WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n${said}\n\n`);
    default:
      return json({ text: said, usage });
  }
}
