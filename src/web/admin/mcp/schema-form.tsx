import { type ReactNode, useId } from 'react';
import { elementsOf, membersOf, parseJson, textIn } from '../../../core/foreign.ts';
import { visible } from '../../shared/visible.ts';

/** The subset of JSON Schema that the form supports. */
export interface Schema {
  readonly type?: unknown;
  readonly description?: unknown;
  readonly default?: unknown;
  readonly enum?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly unknown[];
}

/** Reads a schema from a server: the properties of an object, as far as they are schemas. */
export function schemaIn(json: unknown): Schema {
  const { properties, required } = membersOf(json);
  return {
    properties: Object.fromEntries(
      Object.entries(membersOf(properties)).map(([name, property]): [string, Schema] => [
        name,
        membersIn(property),
      ]),
    ),
    required: elementsOf(required),
  };
}

function membersIn(json: unknown): Schema {
  const { type, description, default: value, enum: choices } = membersOf(json);
  return { type, description, default: value, enum: choices };
}

type FieldKind = 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'json';

interface Field {
  readonly name: string;
  readonly kind: FieldKind;
  readonly isRequired: boolean;
  readonly schema: Schema;
}

/** One field per property; a property without a simple input is edited as JSON. */
export function fieldsOf(schema: Schema | undefined): Field[] {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
    name,
    kind: kindOf(property),
    isRequired: schema?.required?.includes(name) === true,
    schema: property,
  }));
}

function kindOf({ type, enum: choices }: Schema): FieldKind {
  if (Array.isArray(choices) && choices.every((each) => typeof each === 'string')) return 'choice';
  if (type === 'string') return 'text';
  if (type === 'number' || type === 'integer' || type === 'boolean') return type;
  return 'json';
}

const choicesOf = ({ enum: choices }: Schema): readonly string[] => elementsOf(choices).map(textIn);

/** The initial text of a field. */
export function initialText({ schema, kind, isRequired }: Field): string {
  const { default: value } = schema;
  if (value !== undefined) return typeof value === 'string' ? value : JSON.stringify(value);
  if (kind === 'boolean') return isRequired ? 'false' : '';
  if (kind === 'choice' && isRequired) return choicesOf(schema)[0] ?? '';
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
    return parseJson(text);
  } catch {
    throw new Error(
      `${name}: ${kind === 'json' ? 'this is not valid JSON' : `this is not ${kind === 'integer' ? 'an' : 'a'} ${kind}`}`,
    );
  }
}

/** A form for a JSON schema. Values are texts until they are sent. */
export function SchemaForm({
  fields,
  texts,
  change,
}: {
  readonly fields: readonly Field[];
  readonly texts: Readonly<Record<string, string>>;
  readonly change: (name: string, text: string) => void;
}): ReactNode {
  if (fields.length === 0) return <p className="quiet">It takes no arguments.</p>;
  return fields.map((field) => (
    <SchemaField
      key={field.name}
      field={field}
      text={texts[field.name] ?? ''}
      change={(text) => change(field.name, text)}
    />
  ));
}

function SchemaField({
  field,
  text,
  change,
}: {
  readonly field: Field;
  readonly text: string;
  readonly change: (text: string) => void;
}): ReactNode {
  const id = useId();
  const { name, isRequired, schema, kind } = field;
  const { description } = schema;
  return (
    <div className="schema-field">
      <label htmlFor={id}>
        <code>{visible(name)}</code>{' '}
        <span className="quiet">
          {kind === 'json' ? 'JSON' : kind}
          {isRequired ? ', required' : ''}
        </span>
      </label>
      <Input id={id} field={field} text={text} change={change} />
      {typeof description === 'string' ? (
        <p id={`${id}-about`} className="quiet">
          {visible(description)}
        </p>
      ) : null}
    </div>
  );
}

function Input({
  id,
  field: { kind, isRequired, schema },
  text,
  change,
}: {
  readonly id: string;
  readonly field: Field;
  readonly text: string;
  readonly change: (text: string) => void;
}): ReactNode {
  const about = typeof schema.description === 'string' ? { 'aria-describedby': `${id}-about` } : {};
  const onChange = ({ target }: { readonly target: { readonly value: string } }): void =>
    change(target.value);
  if (kind === 'choice' || kind === 'boolean') {
    const choices = kind === 'boolean' ? ['true', 'false'] : choicesOf(schema);
    return (
      <select id={id} {...about} value={text} onChange={onChange}>
        {isRequired ? null : <option value="">(left out)</option>}
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {visible(choice)}
          </option>
        ))}
      </select>
    );
  }
  if (kind === 'json')
    return (
      <textarea
        id={id}
        {...about}
        className="mono"
        rows={3}
        spellCheck={false}
        required={isRequired}
        value={text}
        onChange={onChange}
      />
    );
  const isNumber = kind === 'number' || kind === 'integer';
  return (
    <input
      id={id}
      {...about}
      type={isNumber ? 'number' : 'text'}
      step={kind === 'number' ? 'any' : undefined}
      autoComplete="off"
      required={isRequired && isNumber}
      value={text}
      onChange={onChange}
    />
  );
}
