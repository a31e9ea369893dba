import type { ChatRequest, OutputFormat, Reasoning, TextPart, ToolChoice } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { EFFORTS } from '../../chat/effort.ts';
import { type MemberReader, readMembers } from '../../chat/member-reader.ts';
import { splitSystem } from '../../chat/turns.ts';
import { INCLUDE_HINTS, REQUEST_HINTS, STREAM_HINTS } from './hints.ts';
import { readInput } from './read-input.ts';
import { readTool, withoutDoubles } from './read-tools.ts';

/** Reads the body of `POST /responses`. */
export function readRequest(body: Json): ChatRequest {
  return readMembers(body, '', (members) => {
    refuseOptions(members);
    const instructions = members.text('instructions') ?? '';
    const input = readInput(members);
    const { system, turns } = splitSystem(input.turns);
    const { output, verbosity } = members.object('text', readText) ?? {};
    const stream = members.flag('stream') ?? false;
    return defined({
      model: members.requiredText('model'),
      system: [...(instructions === '' ? [] : [plainText(instructions)]), ...system],
      turns,
      tools: withoutDoubles([...members.objects('tools', readTool).flat(), ...input.tools]),
      toolChoice: readToolChoice(members),
      parallelToolCalls: members.flag('parallel_tool_calls') === false ? false : undefined,
      maxTokens: members.number('max_output_tokens'),
      temperature: members.number('temperature'),
      topP: members.number('top_p'),
      output,
      verbosity,
      reasoning: members.object('reasoning', readReasoning),
      user: readUser(members),
      metadata: members.map('metadata', 'string'),
      serviceTier: members.text('service_tier'),
      stream,
      streamUsage: true,
    });
  });
}

function plainText(text: string): TextPart {
  return { type: 'text', text };
}

/** Members that have no equivalent elsewhere: only their defaults are accepted. */
function refuseOptions(members: MemberReader): void {
  members.skip(REQUEST_HINTS);
  members.only('background', false);
  members.only('truncation', 'disabled');
  members.only('top_logprobs', 0);
  members.onlyTexts('include', INCLUDE_HINTS);
  members.object('stream_options', (options) => options.skip(STREAM_HINTS));
}

/** `safety_identifier` is the newer name. */
function readUser(members: MemberReader): string | undefined {
  const older = members.text('user');
  return members.text('safety_identifier') ?? older;
}

function readText(text: MemberReader): Pick<ChatRequest, 'output' | 'verbosity'> {
  return defined({
    output: text.object('format', readFormat),
    verbosity: text.choice('verbosity', ['low', 'medium', 'high']),
  });
}

function readFormat(format: MemberReader): OutputFormat | undefined {
  const type = format.requiredChoice('type', ['text', 'json_object', 'json_schema']);
  if (type === 'json_object') return { type: 'json' };
  if (type === 'text') return undefined;
  return defined({
    type: 'schema' as const,
    name: format.text('name'),
    description: format.text('description'),
    schema: format.required('schema', format.json('schema')),
    strict: format.flag('strict'),
  });
}

function readReasoning(reasoning: MemberReader): Reasoning {
  reasoning.only('mode', 'standard');
  reasoning.only('context', 'auto');
  // The older name of `summary`.
  const older = reasoning.choice('generate_summary', SUMMARIES);
  return defined({
    effort: reasoning.choice('effort', EFFORTS),
    summary: reasoning.choice('summary', SUMMARIES) ?? older,
  });
}

const SUMMARIES = ['auto', 'concise', 'detailed'] as const;

function readToolChoice(members: MemberReader): ToolChoice | undefined {
  const value = members.value('tool_choice');
  if (value === undefined) return undefined;
  if (typeof value === 'string')
    return { mode: members.requiredChoice('tool_choice', ['auto', 'none', 'required']) };
  return members.object('tool_choice', (choice): ToolChoice => {
    const type = choice.requiredChoice('type', ['function', 'custom', 'allowed_tools']);
    if (type !== 'allowed_tools') return { mode: 'tool', name: choice.requiredText('name') };
    return {
      mode: 'allowed',
      isRequired: choice.choice('mode', ['auto', 'required']) === 'required',
      names: choice.objects('tools', (tool) => {
        tool.only('type', 'function', 'custom');
        return tool.requiredText('name');
      }),
    };
  });
}
