import { must } from '../judge.ts';
import { fuzz } from '../runner.ts';
import { ANSWERS } from './answers.ts';
import { llmKind } from './bench.ts';
import { type ClientKey, judgedAsSent, judgedStream, REQUESTS } from './clients.ts';

const IMAGE = 'data:image/png;base64,iVBORw0KGgo=';
/** The default text of a guardrail's rejection, which is no JSON. */
const REJECTION = 'The request was rejected due to inappropriate content';
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

/** Members of conversations with tools, images and settings, as each format has them. */
const CONVERSATIONS: Readonly<Record<ClientKey, object>> = {
  completions: {
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi, I am ann@example.com' },
          { type: 'image_url', image_url: { url: IMAGE, detail: 'low' } },
        ],
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"x"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: '9 °C' },
    ],
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA, strict: true } },
    temperature: 0.5,
    max_completion_tokens: 100,
    stop: ['END'],
    reasoning_effort: 'low',
    metadata: { a: 'b' },
    user: 'u',
    n: 1,
    seed: 5,
    logit_bias: { 5: 1 },
  },
  messages: {
    system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '5m' } }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi, I am ann@example.com' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'x', signature: 's' },
          { type: 'tool_use', id: 'c1', name: 'get_weather', input: { city: 'x' } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c1', content: '9 °C', is_error: false }],
      },
    ],
    tool_choice: { type: 'tool', name: 'get_weather', disable_parallel_tool_use: true },
    thinking: { type: 'enabled', budget_tokens: 2_000 },
    temperature: 1,
    top_k: 5,
    stop_sequences: ['END'],
    metadata: { user_id: 'u' },
    output_config: { effort: 'low' },
  },
  responses: {
    instructions: 'Be brief.',
    input: [
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Hi, I am ann@example.com' },
          { type: 'input_image', image_url: IMAGE, detail: 'auto' },
        ],
      },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'x' }],
        encrypted_content: 'e',
      },
      { type: 'function_call', call_id: 'c1', name: 'get_weather', arguments: '{"city":"x"}' },
      { type: 'function_call_output', call_id: 'c1', output: '9 °C' },
    ],
    tool_choice: { type: 'function', name: 'get_weather' },
    text: { format: { type: 'json_schema', name: 'x', schema: SCHEMA }, verbosity: 'low' },
    reasoning: { effort: 'low', summary: 'auto' },
    max_output_tokens: 100,
    store: false,
    include: ['reasoning.encrypted_content'],
    metadata: { a: 'b' },
  },
  generateContent: {
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    contents: [
      {
        role: 'user',
        parts: [
          { text: 'Hi, I am ann@example.com' },
          { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
          { fileData: { fileUri: 'https://example.com/a.pdf' } },
        ],
      },
      { role: 'model', parts: [{ functionCall: { name: 'get_weather', args: { city: 'x' } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'get_weather', response: { result: '9 °C' } } }] },
    ],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['get_weather'] } },
    generationConfig: {
      temperature: 0.5,
      maxOutputTokens: 100,
      stopSequences: ['END'],
      responseMimeType: 'application/json',
      responseSchema: SCHEMA,
      thinkingConfig: { thinkingBudget: 100, includeThoughts: true },
    },
    safetySettings: [{ category: 'x', threshold: 'y' }],
  },
};

fuzz('LLM requests of clients', 200, () =>
  llmKind(async (trial, lane, bench) => {
    const { random } = trial;
    const { client, model } = lane;
    const { body: small } = REQUESTS[client](model, random(4) === 0);
    const body = trial.mutate(random(4) === 0 ? small : { ...small, ...CONVERSATIONS[client] });
    trial.note(`${client} client, ${lane.api} provider, guarded: ${lane.isGuarded}`);
    trial.note(body);
    // Where a stream was asked for, the provider answers with a body all the same, which may be an error that says so.
    const bytes = Buffer.from(JSON.stringify(ANSWERS[lane.api]));
    lane.reply = { status: 200, type: 'application/json', bytes };
    const answered = await bench.call(trial, lane, false, body);
    trial.note(`the client got HTTP ${answered.status} ${answered.text}`);
    const isOtherShape = answered.text.includes('answered a request for a stream with a whole response');
    must(
      answered.status < 500 || isOtherShape,
      `HTTP ${answered.status} because of a request`,
      answered.text,
    );
    const isAsSent = answered.status === 200 && lane.api === client;
    // What a guardrail found where nothing can be masked, such as in the URL of an image, rejects the request.
    const isRejected = lane.isGuarded && answered.status === 403 && answered.text === REJECTION;
    const ending = isRejected ? 'failed' : isAsSent ? judgedAsSent(answered) : judgedStream(client, answered);
    if (ending === 'failed') await bench.explained(trial, lane, true);
  }),
);
