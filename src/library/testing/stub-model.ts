import { setTimeout as wait } from 'node:timers/promises';
import { elementsOf, isRecord, membersOf, parseJson, textIn } from '../../core/foreign.ts';
import { createGateway } from '../create-gateway.ts';
import { chatChunks, chatCompletion, type StubReply } from './chat-answers.ts';
import { listen } from './local-server.ts';

/**
 * What a stub model answers: text, or text and calls of tools, or an error of the provider; `hang` never answers, `break` ends the
 * connection in the middle of the answer.
 */
export type StubAnswer =
  | string
  | StubReply
  | {
      readonly status: number;
      readonly message?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | 'hang'
  | 'break';

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
  /** Answers the next calls, one each. Then it answers as before. */
  answer(...answers: readonly StubAnswer[]): void;
  /** Members of an entry of `llm.models` whose calls go to it, in the format of that provider. */
  as(provider: 'openAI' | 'anthropic' | 'gemini'): {
    readonly provider: 'openAI' | 'anthropic' | 'gemini';
    readonly params: { readonly baseUrl: string; readonly apiKey: string };
  };
  close(): Promise<void>;
}

/** Starts a model that answers every call with `usual`, unless `answer` says otherwise. */
export async function stubModel(usual: StubAnswer = 'Hello.'): Promise<StubModel> {
  const calls: StubModelCall[] = [];
  const queue: StubAnswer[] = [];
  const chats = await listen(async (request) => {
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
  const { origin: url, close: closeFront } = await listen((request) =>
    // Gemini has chat completions below this path.
    front.handle(new Request(request.url.replace('/v1beta/openai/', '/v1/'), request)),
  );
  const close = async (): Promise<void> => {
    await closeFront();
    await Promise.all([front.close(), chats.close()]);
  };
  return {
    url,
    calls,
    answer: (...answers) => void queue.push(...answers),
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
    typeof answer === 'string' ? { text: answer === 'break' ? 'Hel' : answer } : answer;
  const breaks = answer === 'break';
  if (body['stream'] !== true && !breaks) return Response.json(chatCompletion(textIn(body['model']), reply));
  const chunks = chatChunks(textIn(body['model']), reply, breaks);
  const stream = new ReadableStream({
    async pull(controller) {
      const next = chunks.shift();
      if (next !== undefined) controller.enqueue(Buffer.from(next));
      else if (breaks) controller.error(new Error('the stub breaks off'));
      else controller.close();
      await wait(0);
    },
  });
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
}
