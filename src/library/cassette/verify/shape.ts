import { isRecord } from '../../../core/foreign.ts';
import { isExactNumber } from '../redaction.ts';

/** Members whose values are decisions of a model or provider, and not its words. */
const DECISIONS = new Set([
  'model',
  'object',
  'type',
  'role',
  'finish_reason',
  'finishReason',
  'stop_reason',
  'status',
  'name',
  'code',
]);

/** Members that differ with each answer, also in whether they are there. */
const INCIDENTAL = new Set(['id', 'created', 'created_at', 'system_fingerprint', 'logprobs', 'obfuscation']);

/**
 * What answers of a model have in common, however they are worded: paths of members with the kind of their value, or with the value
 * where it is a decision. The order and number of events and items do not count.
 */
export function shapeOf(answers: readonly unknown[]): Set<string> {
  const shape = new Set<string>();
  for (const answer of answers) visit(answer, '', '', shape);
  return shape;
}

function visit(value: unknown, name: string, path: string, shape: Set<string>): void {
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every((item) => typeof item === 'number'))
      shape.add(`${path}: ${value.length} numbers`);
    else for (const item of value) visit(item, name, `${path}[]`, shape);
  } else if (typeof value === 'string')
    shape.add(`${path}: ${DECISIONS.has(name) ? JSON.stringify(value) : 'text'}`);
  else if (typeof value === 'number' || (isRecord(value) && isExactNumber(value)))
    shape.add(`${path}: number`);
  else if (isRecord(value)) {
    // Providers send it to keep the connection open.
    if (value['type'] === 'ping') return;
    for (const [member, each] of Object.entries(value))
      if (!INCIDENTAL.has(member)) visit(each, member, path === '' ? member : `${path}.${member}`, shape);
  } else shape.add(`${path}: ${String(value)}`);
}
