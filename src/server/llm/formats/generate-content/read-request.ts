import type { ChatRequest, OutputFormat, Reasoning, TextPart, Tool, ToolChoice } from '../../chat/chat.ts';
import { type CallTarget, type Json, Untranslatable } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { type Hints, type MemberReader, readMembers } from '../../chat/member-reader.ts';
import { stopTexts } from '../../chat/stop-texts.ts';
import { canonicalNames } from './canonical-names.ts';
import { readContents } from './read-contents.ts';
import { jsonSchemaOf } from './schema.ts';

/** Members that change no answer. */
const REQUEST_HINTS: Hints = { store: 'keeps the answer for the dashboard of the provider' };
const DECLARATION_HINTS: Hints = {
  response: 'schema of the result, which the client returns anyway',
  responseJsonSchema: 'the same in JSON Schema',
};

/** Reads the body of `generateContent` and `streamGenerateContent`; the path names the model. */
export function readRequest(body: Json, { model, stream }: CallTarget): ChatRequest {
  return readMembers(canonicalNames(body), '', (members) => {
    members.skip(REQUEST_HINTS);
    members.objects('safetySettings', readSafetySetting);
    return defined({
      model,
      stream,
      streamUsage: true,
      system: members.object('systemInstruction', readInstruction) ?? [],
      turns: readContents(members),
      tools: members.objects('tools', readTools).flat(),
      toolChoice: members.object('toolConfig', (config) =>
        config.object('functionCallingConfig', readCallingConfig),
      ),
      ...members.object('generationConfig', readGenerationConfig),
      metadata: members.map('labels', 'string'),
      serviceTier: readServiceTier(members),
    });
  });
}

/** Other providers have none of these filters, so a request that wants one is refused. */
function readSafetySetting(setting: MemberReader): void {
  setting.text('category');
  setting.text('method');
  setting.only('threshold', 'BLOCK_NONE', 'OFF');
}

function readInstruction(content: MemberReader): TextPart[] {
  // Ignored by the API.
  content.text('role');
  return content.objects('parts', (part) => ({ type: 'text', text: part.requiredText('text') }));
}

/** One `tools` entry; tools that run at the provider are refused by their name. */
function readTools(tool: MemberReader): Tool[] {
  return tool.objects('functionDeclarations', (declaration) => {
    declaration.skip(DECLARATION_HINTS);
    const schema = declaration.json('parametersJsonSchema');
    const parameters = declaration.json('parameters');
    return defined({
      kind: 'function' as const,
      name: declaration.requiredText('name'),
      description: declaration.text('description'),
      parameters: schema ?? (parameters === undefined ? undefined : jsonSchemaOf(parameters)),
    });
  });
}

function readCallingConfig(config: MemberReader): ToolChoice | undefined {
  const mode = config.choice('mode', ['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED']);
  const names = config.texts('allowedFunctionNames') ?? [];
  switch (mode) {
    case 'NONE':
      return { mode: 'none' };
    case 'ANY':
    case 'VALIDATED': {
      const isRequired = mode === 'ANY';
      const [name] = names;
      if (name === undefined) return { mode: isRequired ? 'required' : 'auto' };
      return names.length === 1 && isRequired
        ? { mode: 'tool', name }
        : { mode: 'allowed', names, isRequired };
    }
    case 'AUTO':
      return { mode: 'auto' };
    default:
      return undefined;
  }
}

function readGenerationConfig(config: MemberReader) {
  config.only('responseModalities', ['TEXT'], ['Text'], []);
  config.only('responseLogprobs', false);
  const count = config.number('candidateCount');
  return {
    maxTokens: config.number('maxOutputTokens'),
    temperature: config.number('temperature'),
    topP: config.number('topP'),
    topK: config.number('topK'),
    stop: stopTexts(config.texts('stopSequences')),
    presencePenalty: config.number('presencePenalty'),
    frequencyPenalty: config.number('frequencyPenalty'),
    seed: config.number('seed'),
    count: count === 1 ? undefined : count,
    output: readOutput(config),
    reasoning: config.object('thinkingConfig', readThinking),
  };
}

function readOutput(config: MemberReader): OutputFormat | undefined {
  const type = config.choice('responseMimeType', ['text/plain', 'application/json']);
  const own = config.json('responseSchema');
  const schema = config.json('responseJsonSchema') ?? (own === undefined ? undefined : jsonSchemaOf(own));
  if (type !== 'application/json') {
    if (schema === undefined) return undefined;
    throw new Untranslatable(config.pathOf('responseMimeType'), 'a schema needs `application/json`');
  }
  return schema === undefined ? { type: 'json' } : { type: 'schema', schema };
}

const EFFORTS: ReadonlyMap<string, Reasoning['effort']> = new Map([
  ['MINIMAL', 'minimal'],
  ['LOW', 'low'],
  ['MEDIUM', 'medium'],
  ['HIGH', 'high'],
]);

function readThinking(config: MemberReader): Reasoning | undefined {
  const level = config.text('thinkingLevel')?.toUpperCase();
  const effort = level === undefined ? undefined : (EFFORTS.get(level) ?? config.refuse('thinkingLevel'));
  const budget = config.number('thinkingBudget');
  const summary = config.flag('includeThoughts') === true ? { summary: 'auto' as const } : {};
  if (budget === 0) return { effort: 'none' };
  // -1 leaves the budget to the model.
  if (budget !== undefined && budget > 0) return { budgetTokens: budget, ...summary };
  if (effort !== undefined) return { effort, ...summary };
  return summary.summary === undefined ? undefined : summary;
}

function readServiceTier(members: MemberReader): string | undefined {
  const tier = members.choice('serviceTier', ['unspecified', 'standard', 'flex', 'priority']);
  return tier === 'standard' ? 'default' : tier === 'unspecified' ? undefined : tier;
}
