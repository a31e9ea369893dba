import type { Reply } from '../../../kernel/request/request-context.ts';
import { dataStream, reply, required } from './reply.ts';
import { type Body, textOf, wordsOf } from './words.ts';

/** A tenth of a second of silence, as WAV whatever `response_format` says. */
export function speech(body: Body): Reply {
  const words = wordsOf(textOf(required(body, 'input'))).length;
  if (body['stream_format'] !== 'sse') return reply('audio/wav', SILENCE);
  return dataStream([
    { type: 'speech.audio.delta', audio: SILENCE.toString('base64') },
    {
      type: 'speech.audio.done',
      usage: { input_tokens: words, output_tokens: words, total_tokens: words * 2 },
    },
  ]);
}

/** WAV (RIFF, PCM): mono, 8,000 samples per second of 8 bits. */
const SILENCE = ((): Buffer => {
  const rate = 8_000;
  const samples = rate / 10;
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + samples, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.write('data', 36);
  header.writeUInt32LE(samples, 40);
  return Buffer.concat([header, Buffer.alloc(samples, 128)]);
})();
