import { decodedUri, isRecord, membersOf } from '../../../../core/foreign.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { mapSchemas } from '../../chat/sub-schemas.ts';

/**
 * A JSON Schema in the words that Gemini reads: it follows references to `$defs` only, refuses other members beside them, and
 * knows neither `allOf` nor `const` (Gemini API, "GenerationConfig", `responseJsonSchema`). Schemas made with Zod refer to
 * where a schema was first used, those of draft 7 to `definitions`, and Pydantic writes defaults beside references.
 */
export function plainReferences(schema: Json): Json {
  const { definitions: _, ...root } = schema;
  const { $defs, ...withoutDefinitions } = root;
  const known = new Set(Object.values(membersOf($defs)));
  const taken = new Set(Object.keys(membersOf($defs)));
  /** Schemas elsewhere that something refers to, with their names in `$defs`. */
  const added = new Map<Json, string>();

  const find = (one: Json): Json => {
    const target = targetOf(schema, one['$ref']);
    if (target !== undefined && !known.has(target.schema) && !added.has(target.schema))
      added.set(target.schema, freeName(target.name, taken));
    return mapSchemas(one, find);
  };
  find(schema);

  const referenceTo = (one: Json): Json | undefined => {
    const name = added.get(one);
    return name === undefined ? undefined : { $ref: `#/$defs/${name}` };
  };
  const write = (one: Json): Json => inGeminiWords(mapSchemas(one, write));
  // What is in two of them is not repeated: each of a deep chain would have all below it.
  const writeCopy = (one: Json): Json =>
    inGeminiWords(mapSchemas(one, (inside) => referenceTo(inside) ?? writeCopy(inside)));
  const inGeminiWords = ({ $ref, allOf, ...others }: Json): Json => {
    const target = targetOf(schema, $ref);
    if (target !== undefined)
      return together(referenceTo(target.schema) ?? { $ref }, { ...others, ...defined({ allOf }) });
    if (Array.isArray(allOf) && allOf.length === 1 && isRecord(allOf[0]))
      return together(allOf[0], { ...others, ...defined({ $ref }) });
    return withoutConst({ ...others, ...defined({ $ref, allOf }) });
  };

  const written = write(root);
  if (added.size === 0) return written;
  const copies = [...added].map(([one, name]) => [
    name,
    writeCopy(one === schema ? withoutDefinitions : one),
  ]);
  return { ...written, $defs: { ...membersOf(written['$defs']), ...Object.fromEntries(copies) } };
}

/** The schema at a JSON Pointer (RFC 6901) and a name for it. */
function targetOf(root: Json, reference: unknown): { name: string; schema: Json } | undefined {
  if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) return undefined;
  let value: unknown = root;
  let name = 'schema';
  for (const step of reference.split('/').slice(1)) {
    name = decoded(step);
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return isRecord(value) ? { name, schema: value } : undefined;
}

const decoded = (step: string): string => decodedUri(step).replaceAll('~1', '/').replaceAll('~0', '~');

function freeName(wanted: string, taken: Set<string>): string {
  const plain = wanted.replaceAll(/[^\w-]/g, '_');
  let name = plain;
  for (let n = taken.size + 1; taken.has(name); n += 1) name = `${plain}_${n}`;
  taken.add(name);
  return name;
}

/** A schema with members beside it; `anyOf` of one schema means that schema. */
function together(schema: Json, members: Json): Json {
  const isAllowed = Object.keys(members).every((name) => name.startsWith('$'));
  if (isAllowed) return { ...schema, ...members };
  // Two lists have no place beside each other: Gemini does not read this one.
  return { ...withoutConst(members), ['anyOf' in members ? 'allOf' : 'anyOf']: [schema] };
}

function withoutConst(schema: Json): Json {
  const { const: value, ...others } = schema;
  return typeof value === 'string' || typeof value === 'number' ? { ...others, enum: [value] } : schema;
}
