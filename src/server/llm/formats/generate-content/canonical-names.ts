import { elementsOf, isRecord } from '../../../../core/foreign.ts';
import { type Json, Untranslatable } from '../../chat/chat-format.ts';

/** Members whose content belongs to the client. */
const OPAQUE = new Set([
  'args',
  'labels',
  'parameters',
  'parametersJsonSchema',
  'response',
  'responseJsonSchema',
  'responseSchema',
]);

/**
 * The body with member names in camel case. Google's APIs accept `system_instruction` as well as `systemInstruction`
 * (proto3 JSON). Throws `Untranslatable` if an object has both.
 */
export function canonicalNames(value: Json, path = ''): Json {
  const members: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    const name = key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (Object.hasOwn(members, name)) throw new Untranslatable(`${path}${key}`, 'the same member, twice');
    members[name] = OPAQUE.has(name) ? member : canonicalValue(member, `${path}${name}`);
  }
  return members;
}

function canonicalValue(value: unknown, path: string): unknown {
  if (Array.isArray(value))
    return elementsOf(value).map((item, index) => canonicalValue(item, `${path}[${index}]`));
  return isRecord(value) ? canonicalNames(value, `${path}.`) : value;
}
