import { type HttpUpstream, httpUpstream, type Received } from '../../kit/upstream.ts';

// A provider with the chat and embeddings APIs of OpenAI, Anthropic and Ollama, below any path. The model says what it does:
// `fails-CODE` answers with that status, `slow` after five seconds.

const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const ERROR = { error: { message: 'asked for', type: 'asked_for', code: null } };

export function twinProvider(): Promise<HttpUpstream> {
  return httpUpstream(async ({ url = '' }, response, received) => {
    const { model = '', stream } = bodyIn(received);
    const [, code] = /fails-(\d+)/.exec(`${model} ${url}`) ?? [];
    if (model === 'slow') await new Promise((done) => response.once('close', done));
    else if (code !== undefined)
      response.writeHead(Number(code), { 'content-type': 'application/json' }).end(JSON.stringify(ERROR));
    else if (stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(/messages$/.test(url) ? messageEvents(model) : chunks(model));
    } else {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answerTo(url, model)));
    }
  });
}

/** The members of a JSON body that say what to do. */
export function bodyIn({ body }: Received): Record<string, unknown> & { model?: string; stream?: boolean } {
  if (body === '') return {};
  return JSON.parse(Buffer.from(body, 'latin1').toString('utf8')) as Record<string, unknown>;
}

function answerTo(url: string, model: string): object {
  if (/messages$/.test(url))
    return {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model, stop_reason: 'end_turn' },
      ...{ stop_sequence: null, content: [{ type: 'text', text: 'Hello.' }] },
      usage: { input_tokens: 3, output_tokens: 2 },
    };
  if (/embeddings$/.test(url))
    return {
      ...{ object: 'list', model, usage: { prompt_tokens: 3, total_tokens: 3 } },
      data: [{ object: 'embedding', index: 0, embedding: [0.5, 0.25] }],
    };
  if (/responses$/.test(url))
    return {
      ...{ id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model, error: null },
      ...{ parallel_tool_calls: true, tool_choice: 'auto', tools: [], metadata: {}, instructions: null },
      ...{ incomplete_details: null, temperature: 1, top_p: 1 },
      output: [
        {
          ...{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' },
          content: [{ type: 'output_text', text: 'Hello.', annotations: [] }],
        },
      ],
      usage: {
        ...{ input_tokens: 3, output_tokens: 2, total_tokens: 5 },
        ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
      },
    };
  if (/[^t]\/completions$/.test(url))
    return {
      ...{ id: 'cmpl-1', object: 'text_completion', created: 1, model, usage: USAGE },
      choices: [{ index: 0, text: 'Hello.', finish_reason: 'stop', logprobs: null }],
    };
  const message = { role: 'assistant', content: 'Hello.' };
  return {
    ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model, usage: USAGE },
    choices: [{ index: 0, message, finish_reason: 'stop' }],
  };
}

function chunks(model: string): string {
  const chunk = (delta: object, finish: string | null, usage?: object): string =>
    `data: ${JSON.stringify({
      ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model },
      choices: usage === undefined ? [{ index: 0, delta, finish_reason: finish }] : [],
      ...(usage === undefined ? {} : { usage }),
    })}\n\n`;
  const first = chunk({ role: 'assistant', content: 'Hello.' }, null);
  return `${first}${chunk({}, 'stop')}${chunk({}, null, USAGE)}data: [DONE]\n\n`;
}

function messageEvents(model: string): string {
  const message = {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', model, content: [], stop_reason: null },
    ...{ stop_sequence: null, usage: { input_tokens: 3, output_tokens: 0 } },
  };
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
    { type: 'content_block_stop', index: 0 },
    {
      ...{ type: 'message_delta', usage: { output_tokens: 2 } },
      delta: { stop_reason: 'end_turn', stop_sequence: null },
    },
    { type: 'message_stop' },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
}
