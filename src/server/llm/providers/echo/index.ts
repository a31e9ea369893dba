import { randomUUID } from 'node:crypto';
import { elementsOf } from '../../../../core/foreign.ts';
import { textReply } from '../../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../../kernel/request/request-context.ts';
import { packedVector } from '../../formats/embeddings/packed-vector.ts';
import { type FormatKey, formatOf } from '../../formats/index.ts';
import { membersOf } from '../../json-members.ts';
import type { LlmCall } from '../../llm-call.ts';
import { defineProvider } from '../provider.ts';
import { chatCompletion, usageOf, wantsUsage } from './chat-completions.ts';
import { geminiCountTokens, generatedContent } from './generate-content.ts';
import { message, promptOf } from './messages.ts';
import { EchoConversation } from './realtime.ts';
import { dataStream, InvalidRequest, json, namedStream, now, reply, required, text } from './reply.ts';
import { response } from './responses.ts';
import { type Body, deltasOf, echoWords, flatText, textOf, textsOf, wordsOf } from './words.ts';

/** The input tokens that `/v1/messages` would report. */
const tokenCount = (body: Body): Reply => json({ input_tokens: wordsOf(promptOf(body).prompt).length });

/** Ranks documents by the share of the words of the query that they contain. */
function rerank(body: Body): Reply {
  const query = wordsOf(textOf(required(body, 'query')).toLowerCase());
  const documents = required(body, 'documents');
  if (!Array.isArray(documents))
    throw new InvalidRequest('invalid_type', "Invalid type for 'documents': expected a list.");
  const texts = documents.map((document) => textOf(membersOf(document)?.['text'] ?? document));
  const ranked = texts
    .map((text, index) => {
      const words = new Set(wordsOf(text.toLowerCase()));
      const found = query.filter((word) => words.has(word)).length;
      return { index, relevance_score: query.length === 0 ? 0 : found / query.length };
    })
    .sort((a, b) => b.relevance_score - a.relevance_score);
  const most = body['top_n'];
  const results = typeof most === 'number' ? ranked.slice(0, Math.max(0, most)) : ranked;
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, query.length);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return json({ id: randomUUID(), model: textOf(body['model']), results, usage });
}

/** One white pixel, as PNG. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=';

/** More than any model makes in one call (OpenAI: 10). */
const MOST = 10;

/** `n` images, inline whatever `response_format` says. */
function images(body: Body, streaming: boolean): Reply {
  const words = wordsOf(textOf(body['prompt'] ?? '')).length;
  const usage = {
    input_tokens: words,
    input_tokens_details: { text_tokens: words, image_tokens: 0 },
    output_tokens: 1,
    total_tokens: words + 1,
  };
  if (streaming) {
    const event = { type: 'image_generation.completed', b64_json: PIXEL, created_at: now(), usage };
    return namedStream([event]);
  }
  const count = Math.min(Math.max(1, Number(body['n'] ?? 1) || 1), MOST);
  const data = Array.from({ length: count }, () => ({ b64_json: PIXEL }));
  return json({ created: now(), data, output_format: 'png', usage });
}

/** Repeats `prompt`, because a recording cannot be repeated as text. */
function transcription(body: Body, streaming: boolean): Reply {
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

/** One choice for each prompt of a list. */
function textCompletion(body: Body, streaming: boolean): Reply {
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

/** A tenth of a second of silence, as WAV whatever `response_format` says. */
function speech(body: Body): Reply {
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

/** The categories of OpenAI's `omni-moderation-latest`. */
const CATEGORIES = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
];

/** One result for each text of a list, never flagged. Parts of one multi-modal input have one result together. */
function moderation(body: Body): Reply {
  const input = required(body, 'input');
  const isList = Array.isArray(input) && elementsOf(input).every((item) => typeof item === 'string');
  const of = (value: unknown): object => Object.fromEntries(CATEGORIES.map((name) => [name, value]));
  const result = {
    flagged: false,
    categories: of(false),
    category_scores: of(0),
    category_applied_input_types: of(['text']),
  };
  return json({
    id: `modr-${randomUUID()}`,
    model: textOf(body['model'] ?? 'omni-moderation-latest'),
    results: isList ? elementsOf(input).map(() => result) : [result],
  });
}

/** One embedding for each text of a list. */
function embeddings(body: Body): Reply {
  const texts = textsOf(required(body, 'input'));
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, 0);
  // The default of the official clients.
  const isPacked = body['encoding_format'] === 'base64';
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: isPacked ? packedVector(embedding(text)) : embedding(text),
  }));
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return json({ object: 'list', data, model: textOf(body['model']), usage });
}

/** Three numbers that depend only on the text: enough to see that embeddings work. */
function embedding(text: string): number[] {
  return [text.length / 100, text.split(' ').length / 10, (text.codePointAt(0) ?? 0) / 1000];
}

/** `embedContent` of the Gemini API. */
function embeddedContent(body: Body): Reply {
  const text = flatText(membersOf(required(body, 'content'))?.['parts']);
  return json({
    embedding: { values: embedding(text) },
    usageMetadata: { promptTokenCount: wordsOf(text).length },
  });
}

/** `batchEmbedContents` of the Gemini API. */
function embeddedContents(body: Body): Reply {
  const requests = required(body, 'requests');
  const texts = elementsOf(requests).map((request) =>
    flatText(membersOf(membersOf(request)?.['content'])?.['parts']),
  );
  const tokens = texts.reduce((sum, text) => sum + wordsOf(text).length, 0);
  return json({
    embeddings: texts.map((text) => ({ values: embedding(text) })),
    usageMetadata: { promptTokenCount: tokens },
  });
}

/** Answers one call. Throws `InvalidRequest`. */
type Answer = (body: Body, streaming: boolean) => Reply;

/** Calls of other formats are refused. Realtime sessions are not calls: `openSession` answers them. */
const ANSWERS: Partial<Readonly<Record<FormatKey, Answer>>> = {
  completions: chatCompletion,
  textCompletions: textCompletion,
  responses: response,
  messages: message,
  anthropicTokenCount: tokenCount,
  generateContent: generatedContent,
  geminiCountTokens,
  embedContent: embeddedContent,
  batchEmbedContents: embeddedContents,
  embeddings,
  rerank,
  moderations: moderation,
  speech,
  transcriptions: transcription,
  images,
};

/**
 * A built-in model for tests and demos that repeats its prompt, without a key or a network. Words count as tokens. It
 * calls the first tool if `tool_choice` forces a call. Paths of `passthrough` are a 404, as at the OpenAI API.
 */
export const echo = defineProvider({
  key: 'echo',
  aliases: [],
  telemetryName: 'echo',
  baseUrl: undefined,
  formats: [],
  answer,
  openSession(model) {
    const conversation = new EchoConversation(model);
    const texts = (events: readonly object[]): string[] => events.map((event) => JSON.stringify(event));
    return {
      start: () => texts(conversation.start()),
      answer: (message) => texts(conversation.answer(message)),
    };
  },
});

function answer(ctx: RequestContext, call: LlmCall, body: Body): Reply {
  const { format, streaming, requestModel, providerModel: model = requestModel } = call;
  const answerTo = format && ANSWERS[format];
  if (answerTo === undefined)
    return refusal(format, 404, 'unknown_url', `the echo model does not support ${ctx.method} ${ctx.path}`);
  try {
    // Some formats have the model in the path.
    return answerTo({ model, ...body }, streaming);
  } catch (error) {
    // Returned, not thrown: an invalid request must not count as a failure of the model.
    if (error instanceof InvalidRequest) return refusal(format, 400, error.code, error.message);
    throw error;
  }
}

function refusal(format: FormatKey | undefined, status: number, code: string, message: string): Reply {
  const error = { status, type: 'invalid_request_error', code, message };
  return textReply(status, JSON.stringify(formatOf(format).errorBody(error)), 'application/json');
}
