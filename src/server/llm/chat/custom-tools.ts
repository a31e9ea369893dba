import { jsonIn, membersOf } from '../../../core/foreign.ts';
import type { Tool, ToolCallPart } from './chat.ts';
import { joinTexts } from './turns.ts';

/**
 * The input of a custom tool is text. Formats and providers without custom tools get a function with one argument
 * instead, and its calls are turned back for the client.
 */
const INPUT = 'input';

export function asFunction(tool: Tool): Extract<Tool, { kind: 'function' }> {
  if (tool.kind === 'function') return tool;
  const { name, description = '', format } = tool;
  const hint = grammarHint(format);
  const input = { type: 'string', ...(hint === '' ? {} : { description: hint }) };
  const parameters = {
    type: 'object',
    properties: { [INPUT]: input },
    required: [INPUT],
    additionalProperties: false,
  };
  return {
    kind: 'function',
    name,
    ...(description === '' ? {} : { description }),
    parameters,
  };
}

/** Other APIs cannot enforce a grammar, so the description of the tool asks the model to follow it. */
function grammarHint(format: Readonly<Record<string, unknown>> | undefined): string {
  const { type, syntax, definition } = format ?? {};
  return type === 'grammar'
    ? joinTexts([`Text that matches this ${String(syntax)} grammar:`, String(definition)])
    : '';
}

/** JSON text of the arguments of a call, also for one of a custom tool. Some models write '' for no arguments. */
export function functionArguments({ isCustom, arguments: text }: ToolCallPart): string {
  if (isCustom === true) return JSON.stringify({ [INPUT]: text });
  return text.trim() === '' ? '{}' : text;
}

/** The input of a custom tool that the model called as a function. */
export function customInput(args: string): string {
  const input = membersOf(jsonIn(args))[INPUT];
  return typeof input === 'string' ? input : args;
}
