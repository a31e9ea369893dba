import { isObject, type Json, shown } from './document.ts';
import { ArgumentError, queryPairs, STYLES, type Style } from './parameters.ts';

/** Media type of HTML forms. */
export const FORM_TYPE = 'application/x-www-form-urlencoded';

interface FieldStyle {
  readonly style: Style;
  readonly explode: boolean;
}

/** How the fields of a form are written, if the document says so, by name. */
export type FormFields = ReadonlyMap<string, FieldStyle>;

/** Without `encoding`, OpenAPI 3.0 and 3.1 differ on objects, so these need one. */
const UNSPECIFIED: FieldStyle = { style: 'form', explode: true };

/** Reads the `encoding` of a form (OpenAPI 3.1 §4.8.15). Returns the reason if a field cannot be written. */
export function readFormFields(encoding: unknown): FormFields | string {
  const fields = new Map<string, FieldStyle>();
  for (const [name, value] of Object.entries(isObject(encoding) ? encoding : {})) {
    const read = isObject(value) ? readField(value) : undefined;
    if (read === undefined) return `its form field ${shown(name)} cannot be written`;
    fields.set(name, read);
  }
  return fields;
}

/** `contentType` is ignored if the field has a style (§4.8.15.1). */
function readField({ style, explode, contentType }: Json): FieldStyle | undefined {
  if (style === undefined && explode === undefined && contentType !== undefined)
    return contentType === 'application/json' ? { style: 'json', explode: false } : undefined;
  const own = STYLES.query.find((known) => known === (style ?? 'form'));
  if (own === undefined || own === 'json') return undefined;
  return { style: own, explode: typeof explode === 'boolean' ? explode : own === 'form' };
}

/** A form with these fields, given as JSON texts by name. Null means absent. Throws `ArgumentError`. */
export function formBody(given: readonly (readonly [string, string])[], fields: FormFields): string {
  const names = new Set([...given.map(([name]) => name), ...fields.keys()]);
  return given
    .flatMap(([name, text]) => {
      if (text === 'null') return [];
      const field = fields.get(name);
      if (field === undefined && text.startsWith('{'))
        throw new ArgumentError(`body.${name} must not be an object: the API does not say how it is written`);
      return queryPairs({ name, ...(field ?? UNSPECIFIED) }, text, names, 'body');
    })
    .join('&');
}
