import { expect, test } from 'vitest';
import { chunk, DONE, FINISH, llmGateway, llmProvider, streaming } from '../../../kit/llm-provider.ts';
import { send } from '../../../kit/send.ts';

const SCHEMA = { type: 'object', properties: {} };

/** Tools as Codex declares them. */
const TOOLS = [
  {
    type: 'namespace',
    name: 'mcp__node_repl',
    description: 'A persistent process.',
    tools: [{ type: 'function', name: 'js', strict: false, parameters: SCHEMA }],
  },
  { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters: SCHEMA },
  { type: 'custom', name: 'apply_patch' },
];

const call = (index: number, name: string, args: string): string =>
  chunk({
    tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } }],
  }) + [...args].map((text) => chunk({ tool_calls: [{ index, function: { arguments: text } }] })).join('');

/** What a model calls, in functions. */
const STREAM =
  call(0, 'mcp__node_repl__js', '{"code":"1"}') +
  call(1, 'tool_search', '{"query":"x"}') +
  call(2, 'apply_patch', '{"input":"*** Begin"}') +
  FINISH +
  DONE;

const CALLS = [
  {
    type: 'function_call',
    call_id: 'call_0',
    namespace: 'mcp__node_repl',
    name: 'js',
    arguments: '{"code":"1"}',
  },
  { type: 'tool_search_call', call_id: 'call_1', execution: 'client', arguments: { query: 'x' } },
  { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: '*** Begin' },
];

interface Event {
  readonly type: string;
  readonly item?: object;
  readonly response?: { readonly output: object[] };
}

test.each([true, false])(
  'calls of tools that only the Responses API has reach its client, stream: %s',
  async (stream) => {
    await using provider = await llmProvider(streaming((response) => response.end(STREAM)));
    await using gate = await llmGateway(provider, {
      model: { provider: { custom: { formats: [{ type: 'completions' }] } } },
    });
    const { text } = await send(`${gate.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'some-model', input: 'Hi', tools: TOOLS, stream }),
    });
    if (!stream) {
      expect((JSON.parse(text) as { output: object[] }).output).toMatchObject(CALLS);
      return;
    }
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(
      ([, data]) => JSON.parse(data as string) as Event,
    );
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map(({ item }) => item)).toMatchObject(CALLS);
    expect(events.at(-1)?.response?.output).toMatchObject(CALLS);
    const deltas = events.filter(
      ({ type }) => type.endsWith('arguments.delta') || type.endsWith('input.delta'),
    );
    expect(deltas.every((event) => 'output_index' in event && event['output_index'] !== 1)).toBe(true);
  },
);
