import { setImmediate as turnOver } from 'node:timers/promises';
import { elementsOf, isRecord, membersOf, parseJson, textIn } from '../../core/foreign.ts';
import { createGateway } from '../create-gateway.ts';
import { listen } from '../local-server.ts';
import { chatChunks, chatCompletion, type StubReply } from './chat-answers.ts';
import { checkAnswer, type StubAnswer } from './stub-answer.ts';

/** A call that a stub model got, whatever its format was, as a chat completion. */
export interface StubModelCall {
  readonly model: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** Names of the tools that it offered. */
  readonly tools: readonly string[];
  readonly stream: boolean;
  /** The whole request. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A provider of models in the process of the test, which speaks the formats of OpenAI, Anthropic and Gemini. */
export interface StubModel extends AsyncDisposable {
  /** Its origin. `/v1` has the APIs of OpenAI and Anthropic, `/v1beta` that of Gemini. */
  readonly url: string;
  /** The calls that it got, in this order. */
  readonly calls: readonly StubModelCall[];
  /**
   * Answers the next calls, one each. Then it answers as before.
   *
   * @throws `TypeError` if one of them is not a valid answer
   */
  answer(...answers: readonly StubAnswer[]): void;
  /** Members of an entry of `llm.models` whose calls go to it, in the format of that provider. */
  as(provider: 'openAI' | 'anthropic' | 'gemini'): {
    readonly provider: 'openAI' | 'anthropic' | 'gemini';
    readonly params: { readonly baseUrl: string; readonly apiKey: string };
  };
  close(): Promise<void>;
}

/** Where chats arrive in the format that all others are translated to. */
const CHATS = '/v1/chat/completions';

/** Header of an answer that the client gets half of. */
const BREAKS = 'x-stub-breaks';

/**
 * Starts a model that answers every call with `usual`, unless `answer` says otherwise.
 *
 * @throws `TypeError` if `usual` is not a valid answer
 */
export async function stubModel(usual: StubAnswer = 'Hello.'): Promise<StubModel> {
  checkAnswer(usual);
  const calls: StubModelCall[] = [];
  const queue: StubAnswer[] = [];
  const chats = await listen(async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname !== CHATS) return notAnswered(pathname);
    const body = membersOf(parseJson(await request.text()));
    calls.push(callOf(body));
    return responseTo(body, queue.shift() ?? usual, request.signal);
  });
  // A gateway in front speaks all other formats: it translates them to chat completions.
  const params = { baseUrl: `${chats.origin}/v1`, apiKey: 'stub', responses: 'translate' as const };
  const front = await createGateway(
    { llm: { models: [{ name: '*', provider: 'openAI', params }] } },
    { listen: false },
  );
  const { origin: url, close: closeFront } = await listen(async (request) => {
    // Gemini has chat completions below this path.
    const url = request.url.replace('/v1beta/openai/', '/v1/');
    const response = await front.handle(new Request(url, request));
    return response.headers.has(BREAKS) ? brokenOff(response) : response;
  });
  const close = async (): Promise<void> => {
    await closeFront();
    await Promise.all([front.close(), chats.close()]);
  };
  return {
    url,
    calls,
    answer(...answers) {
      for (const each of answers) checkAnswer(each);
      queue.push(...answers);
    },
    as: (provider) => ({
      provider,
      params: { baseUrl: `${url}/${provider === 'gemini' ? 'v1beta' : 'v1'}`, apiKey: 'stub' },
    }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

const callOf = (body: Readonly<Record<string, unknown>>): StubModelCall => ({
  model: textIn(body['model']),
  messages: elementsOf(body['messages']).filter(isRecord),
  tools: elementsOf(body['tools']).map((tool) => textIn(membersOf(membersOf(tool)['function'])['name'])),
  stream: body['stream'] === true,
  body,
});

async function responseTo(
  body: Readonly<Record<string, unknown>>,
  answer: StubAnswer,
  gone: AbortSignal,
): Promise<Response> {
  if (answer === 'hang') {
    await new Promise((resolve) => gone.addEventListener('abort', resolve, { once: true }));
    return new Response(null, { status: 504 });
  }
  if (typeof answer === 'object' && 'status' in answer) {
    const { status, message = `the stub answers ${status}`, headers = {} } = answer;
    return Response.json({ error: { message, type: 'stub_error', code: null } }, { status, headers });
  }
  const reply: StubReply =
    typeof answer === 'string'
      ? { text: answer === 'break' ? 'This is half of an answer.' : answer }
      : answer;
  const model = textIn(body['model']);
  const headers: Record<string, string> = answer === 'break' ? { [BREAKS]: 'yes' } : {};
  if (body['stream'] !== true) return Response.json(chatCompletion(model, reply), { headers });
  const events = ReadableStream.from(inTurns(chatChunks(model, reply)));
  return new Response(events, { headers: { ...headers, 'content-type': 'text/event-stream' } });
}

/** Clients receive each event by itself. */
async function* inTurns(events: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const event of events) {
    yield Buffer.from(event);
    await turnOver();
  }
}

function notAnswered(path: string): Response {
  const message = `the stub model answers chats only, in the formats of OpenAI (${CHATS}, /v1/responses), Anthropic and Gemini: not ${path}`;
  return Response.json(
    { error: { message, type: 'invalid_request_error', code: 'unknown_url' } },
    { status: 404 },
  );
}

/** The first half of a response, then the end of the connection. */
async function brokenOff(response: Response): Promise<Response> {
  const whole = await response.text();
  const left = [Buffer.from(whole.slice(0, whole.length / 2))];
  const half = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = left.shift();
      if (next !== undefined) return controller.enqueue(next);
      // What was read is written first.
      await turnOver();
      controller.error(new Error('the stub breaks off'));
    },
  });
  return new Response(half, { headers: { 'content-type': response.headers.get('content-type') ?? '' } });
}
