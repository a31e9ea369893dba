import { readCacheMark } from '../../chat/cache-mark.ts';
import type { ChatRequest, Reasoning, Tool, ToolChoice } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { EFFORTS } from '../../chat/effort.ts';
import { type MemberReader, readMembers } from '../../chat/member-reader.ts';
import { stopTexts } from '../../chat/stop-texts.ts';
import { splitSystem } from '../../chat/turns.ts';
import { REQUEST_HINTS, STREAM_HINTS } from './hints.ts';
import { readMessage } from './read-message.ts';

/** Reads the body of `POST /chat/completions`. */
export function readRequest(body: Json): ChatRequest {
  return readMembers(body, '', (members) => {
    refuseOptions(members);
    const stream = members.flag('stream') ?? false;
    const options = members.object('stream_options', readStreamOptions);
    return defined({
      model: members.requiredText('model'),
      ...splitSystem(members.requiredObjects('messages', readMessage)),
      tools: members.objects('tools', readTool),
      toolChoice: readToolChoice(members),
      parallelToolCalls: members.flag('parallel_tool_calls') === false ? false : undefined,
      ...readSampling(members),
      output: readOutput(members),
      verbosity: members.choice('verbosity', ['low', 'medium', 'high']),
      reasoning: readReasoning(members),
      user: readUser(members),
      metadata: members.map('metadata', 'string'),
      serviceTier: members.text('service_tier'),
      stream,
      streamUsage: options?.includeUsage ?? false,
    });
  });
}

/** Members that have no equivalent elsewhere: only their defaults are accepted. */
function refuseOptions(members: MemberReader): void {
  members.skip(REQUEST_HINTS);
  members.only('modalities', ['text']);
  members.only('logprobs', false);
  members.only('top_logprobs', 0);
  members.only('functions', []);
}

function readSampling(members: MemberReader) {
  const { stop, maxTokens } = { stop: readStop(members), maxTokens: readMaxTokens(members) };
  const bias = members.map('logit_bias', 'number');
  return {
    maxTokens,
    stop,
    temperature: members.number('temperature'),
    topP: members.number('top_p'),
    // Not in the reference of OpenAI, but in those of vLLM, OpenRouter and most other servers.
    topK: members.number('top_k'),
    presencePenalty: unlessDefault(members.number('presence_penalty'), 0),
    frequencyPenalty: unlessDefault(members.number('frequency_penalty'), 0),
    seed: members.number('seed'),
    count: unlessDefault(members.number('n'), 1),
    logitBias: bias === undefined || Object.keys(bias).length === 0 ? undefined : bias,
  };
}

function unlessDefault(value: number | undefined, assumed: number): number | undefined {
  return value === assumed ? undefined : value;
}

/** `max_tokens` is the older name. */
function readMaxTokens(members: MemberReader): number | undefined {
  const older = members.number('max_tokens');
  return members.number('max_completion_tokens') ?? older;
}

function readStop(members: MemberReader): readonly string[] | undefined {
  const value = members.value('stop');
  return stopTexts(typeof value === 'string' ? [value] : members.texts('stop'));
}

/** `safety_identifier` is the newer name. */
function readUser(members: MemberReader): string | undefined {
  const older = members.text('user');
  return members.text('safety_identifier') ?? older;
}

function readStreamOptions(members: MemberReader): { includeUsage: boolean } {
  members.skip(STREAM_HINTS);
  return { includeUsage: members.flag('include_usage') ?? false };
}

function readReasoning(members: MemberReader): Reasoning | undefined {
  const effort = members.choice('reasoning_effort', EFFORTS);
  return effort === undefined ? undefined : { effort };
}

function readOutput(members: MemberReader): ChatRequest['output'] {
  return members.object('response_format', (format) => {
    const type = format.requiredChoice('type', ['text', 'json_object', 'json_schema']);
    if (type === 'json_object') return { type: 'json' } as const;
    if (type !== 'json_schema') return undefined;
    return format.requiredObject('json_schema', (schema) =>
      defined({
        type: 'schema' as const,
        name: schema.text('name'),
        description: schema.text('description'),
        schema: schema.required('schema', schema.json('schema')),
        strict: schema.flag('strict'),
      }),
    );
  });
}

function readTool(members: MemberReader): Tool {
  const type = members.choice('type', ['function', 'custom']) ?? 'function';
  const cache = readCacheMark(members);
  // Cursor writes it as in the Responses API (archestra-ai/archestra#7375).
  if (type === 'custom') return members.object('custom', readCustomTool) ?? readCustomTool(members);
  return members.requiredObject('function', (tool) =>
    defined({
      kind: 'function' as const,
      name: tool.requiredText('name'),
      description: tool.text('description'),
      parameters: tool.json('parameters'),
      strict: tool.flag('strict'),
      cache: readCacheMark(tool) ?? cache,
    }),
  );
}

function readCustomTool(tool: MemberReader): Tool {
  return defined({
    kind: 'custom' as const,
    name: tool.requiredText('name'),
    description: tool.text('description'),
    format: tool.object('format', (format) => {
      const type = format.choice('type', ['text', 'grammar']);
      // The Responses API has the members of the grammar in `format` itself.
      return type === 'grammar'
        ? { type, ...(format.object('grammar', readGrammar) ?? readGrammar(format)) }
        : { type: 'text' };
    }),
  });
}

function readGrammar(grammar: MemberReader): Json {
  return { syntax: grammar.requiredText('syntax'), definition: grammar.requiredText('definition') };
}

function readToolChoice(members: MemberReader): ToolChoice | undefined {
  const value = members.value('tool_choice');
  if (value === undefined) return undefined;
  if (typeof value === 'string')
    return { mode: members.requiredChoice('tool_choice', ['auto', 'none', 'required']) };
  return members.object('tool_choice', (choice) => {
    const type = choice.choice('type', ['function', 'custom', 'allowed_tools']) ?? 'function';
    if (type !== 'allowed_tools')
      return { mode: 'tool', name: choice.requiredObject(type, (tool) => tool.requiredText('name')) };
    return choice.requiredObject('allowed_tools', (allowed) => ({
      mode: 'allowed',
      isRequired: allowed.choice('mode', ['auto', 'required']) === 'required',
      names: allowed.objects('tools', (tool) => {
        const kind = tool.choice('type', ['function', 'custom']) ?? 'function';
        return tool.requiredObject(kind, (named) => named.requiredText('name'));
      }),
    }));
  });
}
