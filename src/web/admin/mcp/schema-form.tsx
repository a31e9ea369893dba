import { type ReactNode, useId } from 'react';
import { visible } from '../../shared/visible.ts';
import type { Field } from './schema.ts';

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
    const choices = kind === 'boolean' ? ['true', 'false'] : (schema.enum ?? []).map(String);
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
