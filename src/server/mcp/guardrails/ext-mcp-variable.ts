import { toCel } from '../../expressions/cel/values.ts';
import { defineVariable } from '../../expressions/variable.ts';
import { Slot } from '../../kernel/slot.ts';

/** Values of `metadata` in answers of `remote` processors. */
export const extMcpValues = new Slot<Readonly<Record<string, unknown>>>();

export const extMcpVariable = defineVariable(
  'extMcp',
  { type: 'map', doc: 'Values of `metadata` in answers of `remote` processors of `mcpGuardrails`, by name.' },
  (ctx) => toCel(extMcpValues.get(ctx) ?? null),
);

/** The name that upstream has now. */
export const mcpGuardrailsVariable = defineVariable(
  'mcpGuardrails',
  { type: 'map', doc: 'The same as `extMcp`.' },
  (ctx) => extMcpVariable.value(ctx),
);
