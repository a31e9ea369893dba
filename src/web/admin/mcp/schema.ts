/** The subset of JSON Schema that the form supports. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly title?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

export type FieldKind = 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'json';

export interface Field {
  readonly name: string;
  readonly kind: FieldKind;
  readonly isRequired: boolean;
  readonly schema: Schema;
}

/** One field per property; a property without a simple input is edited as JSON. */
export function fieldsOf(schema: Schema | undefined): Field[] {
  const properties =
    typeof schema?.properties === 'object' && schema.properties !== null ? schema.properties : {};
  const required = Array.isArray(schema?.required) ? schema.required : [];
  return Object.entries(properties).map(([name, property]) => ({
    name,
    kind: kindOf(property),
    isRequired: required.includes(name),
    schema: property,
  }));
}

function kindOf({ type, enum: choices }: Schema): FieldKind {
  if (Array.isArray(choices) && choices.every((each) => typeof each === 'string')) return 'choice';
  if (type === 'string') return 'text';
  if (type === 'number' || type === 'integer' || type === 'boolean') return type;
  return 'json';
}

/** The initial text of a field. */
export function initialText({ schema, kind, isRequired }: Field): string {
  const { default: value } = schema;
  if (value !== undefined) return typeof value === 'string' ? value : JSON.stringify(value);
  if (kind === 'boolean') return isRequired ? 'false' : '';
  if (kind === 'choice' && isRequired) return String(schema.enum?.[0] ?? '');
  return '';
}

/** Converts the texts of the fields to arguments. Throws an `Error` that names the field. */
export function argumentsOf(
  fields: readonly Field[],
  texts: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const entries: [string, unknown][] = [];
  for (const { name, kind, isRequired } of fields) {
    const text = texts[name] ?? '';
    // An empty field is left out, unless a text is required.
    if (text === '' && !(isRequired && kind === 'text')) continue;
    entries.push([name, parsedText(name, kind, text)]);
  }
  return Object.fromEntries(entries);
}

function parsedText(name: string, kind: FieldKind, text: string): unknown {
  if (kind === 'text' || kind === 'choice') return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(
      `${name}: ${kind === 'json' ? 'this is not valid JSON' : `this is not ${kind === 'integer' ? 'an' : 'a'} ${kind}`}`,
    );
  }
}
