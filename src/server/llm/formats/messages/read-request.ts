import { readCacheMark } from '../../chat/cache-mark.ts';
import type { ChatRequest, OutputFormat, Reasoning, TextPart, Tool, ToolChoice } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { type MemberReader, readMembers } from '../../chat/member-reader.ts';
import { stopTexts } from '../../chat/stop-texts.ts';
import { isStrictSchema } from '../../chat/strict-schema.ts';
import { withoutAccounting } from './accounting.ts';
import { foundTools } from './found-tools.ts';
import { CONTEXT_EDIT_HINTS, REQUEST_HINTS, TOOL_HINTS } from './hints.ts';
import { readMessage, readText } from './read-message.ts';

/** Reads the body of `POST /messages`. */
export function readRequest(body: Json): ChatRequest {
  const found = foundTools(body);
  return readMembers(body, '', (members) => {
    members.skip(REQUEST_HINTS);
    members.only('speed', 'standard');
    members.object('context_management', readContextManagement);
    const { effort, output } = members.object('output_config', readOutputConfig) ?? {};
    return defined({
      model: members.requiredText('model'),
      system: members.textOrObjects('system', plainInstructions, readInstructions) ?? [],
      turns: members.requiredObjects('messages', readMessage),
      tools: members.objects('tools', (tool) => readTool(tool, found)).flat(),
      ...members.object('tool_choice', readToolChoice),
      maxTokens: members.number('max_tokens'),
      temperature: members.number('temperature'),
      topP: members.number('top_p'),
      topK: members.number('top_k'),
      stop: stopTexts(members.texts('stop_sequences')),
      // The name of `output_config.format` while it was a beta feature.
      output: output ?? members.object('output_format', readFormat),
      reasoning: readReasoning(members, effort),
      user: members.object('metadata', (metadata) => metadata.text('user_id')),
      serviceTier: readServiceTier(members),
      stream: members.flag('stream') ?? false,
      streamUsage: true,
    });
  });
}

function readInstructions(block: MemberReader): readonly TextPart[] {
  const part = readText(block);
  const text = withoutAccounting(part.text);
  return text === '' && part.text !== '' ? [] : [{ ...part, text }];
}

function plainInstructions(text: string): TextPart {
  return { type: 'text', text: withoutAccounting(text) };
}

/** OpenAI's `default` is the tier that Anthropic calls standard. */
function readServiceTier(members: MemberReader): string | undefined {
  const tier = members.choice('service_tier', ['auto', 'standard_only']);
  return tier === 'standard_only' ? 'default' : tier;
}

function readContextManagement(management: MemberReader): void {
  management.objects('edits', (edit) => {
    edit.choice('type', CONTEXT_EDIT_HINTS);
    for (const name of EDIT_MEMBERS) edit.value(name);
  });
}

const EDIT_MEMBERS = ['keep', 'trigger', 'clear_at_least', 'clear_tool_inputs', 'exclude_tools'];

interface OutputConfig {
  readonly effort?: Reasoning['effort'];
  readonly output?: OutputFormat;
}

function readOutputConfig(config: MemberReader): OutputConfig {
  return defined({
    effort: config.choice('effort', ['low', 'medium', 'high', 'xhigh', 'max']),
    output: config.object('format', readFormat),
  });
}

function readFormat(format: MemberReader): OutputFormat {
  format.only('type', 'json_schema');
  const schema = format.required('schema', format.json('schema'));
  // An answer always matches the schema here. OpenAI's guarantee has more conditions.
  return isStrictSchema(schema) ? { type: 'schema', schema, strict: true } : { type: 'schema', schema };
}

/** The effort alone does not turn reasoning on, but every reasoning model of other providers has it on. */
function readReasoning(members: MemberReader, effort: Reasoning['effort']): Reasoning | undefined {
  const thinking = members.object('thinking', (config) => {
    const type = config.requiredChoice('type', ['enabled', 'adaptive', 'disabled', 'between_tools']);
    const budget = config.number('budget_tokens');
    // Models differ in the default of `display`; that of those with budgets is a summary.
    const display = config.choice('display', ['summarized', 'omitted']) ?? DISPLAY[type];
    const summary = display === 'summarized' ? ('auto' as const) : undefined;
    return { type, summary, budgetTokens: type === 'enabled' ? budget : undefined };
  });
  if (thinking === undefined) return effort === undefined ? undefined : { effort };
  const { type, summary, budgetTokens } = thinking;
  if (type === 'disabled' || type === 'between_tools') return { effort: 'none' };
  return defined(effort === undefined ? { summary, budgetTokens } : { summary, effort });
}

const DISPLAY = {
  enabled: 'summarized',
  adaptive: 'omitted',
  disabled: 'omitted',
  between_tools: 'omitted',
} as const;

/** None if the tool is loaded later. */
function readTool(tool: MemberReader, found: ReadonlySet<unknown>): Tool[] {
  tool.only('type', 'custom');
  const isLoadedLater = tool.flag('defer_loading') === true;
  tool.only('allowed_callers', ['direct']);
  tool.skip(TOOL_HINTS);
  const read = defined({
    kind: 'function' as const,
    name: tool.requiredText('name'),
    description: tool.text('description'),
    parameters: tool.required('input_schema', tool.json('input_schema')),
    strict: tool.flag('strict'),
    cache: readCacheMark(tool),
  });
  return isLoadedLater && !found.has(read.name) ? [] : [read];
}

function readToolChoice(choice: MemberReader): Pick<ChatRequest, 'toolChoice' | 'parallelToolCalls'> {
  const type = choice.requiredChoice('type', ['auto', 'any', 'tool', 'none']);
  const isSerial = choice.flag('disable_parallel_tool_use') === true;
  const toolChoice: ToolChoice =
    type === 'tool'
      ? { mode: 'tool', name: choice.requiredText('name') }
      : { mode: type === 'any' ? 'required' : type };
  return { toolChoice, ...(isSerial ? { parallelToolCalls: false } : {}) };
}
