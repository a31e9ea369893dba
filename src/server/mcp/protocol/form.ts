import { entryIn, isRecord } from '../../../core/foreign.ts';
import { elements, members } from '../../kernel/json/json-text.ts';

/** What clients require of a value, and what becomes of one that is otherwise. */
interface Shape {
  /** Whether clients can read a value, apart from its optional members and its elements. */
  readonly is: (value: unknown) => boolean;
  /** Optional members of an object: those that no client reads are left out. Clients ignore others. */
  readonly members?: Readonly<Record<string, Form>>;
  /** Elements of a list: those that no client reads are left out, and those after the first `most`. */
  readonly items?: Form;
  readonly most?: number;
  /** JSON text of what stands for a value that is otherwise; undefined if nothing does. */
  readonly otherwise?: (value: unknown, text: string) => string | undefined;
}

/** A shape, or the one for a value. */
export type Form = Shape | ((value: unknown) => Shape);

const shapeFor = (form: Form, value: unknown): Shape => (typeof form === 'function' ? form(value) : form);

/** Whether clients can read a value as it is. */
export function hasForm(form: Form, value: unknown): boolean {
  const { is, members: optional = {}, items, most = Number.POSITIVE_INFINITY } = shapeFor(form, value);
  if (!is(value)) return false;
  if (Array.isArray(value))
    return items === undefined || (value.length <= most && value.every((item) => hasForm(items, item)));
  if (!isRecord(value)) return true;
  for (const key in value) {
    const member = entryIn(optional, key);
    if (member !== undefined && !hasForm(member, value[key])) return false;
  }
  return true;
}

/** The JSON text of a value, of which `value` was parsed, in the form that clients can read; undefined if there is none. */
export function inForm(form: Form, text: string, value: unknown): string | undefined {
  if (hasForm(form, value)) return text;
  const { is, members: optional = {}, items, most, otherwise } = shapeFor(form, value);
  if (!is(value)) return otherwise?.(value, text);
  if (Array.isArray(value) && items !== undefined) {
    const kept = elements(text)
      .slice(0, most)
      .flatMap(({ start, end }, index) => inForm(items, text.slice(start, end), value[index]) ?? []);
    return `[${kept.join(',')}]`;
  }
  if (!isRecord(value)) return text;
  const kept = members(text).flatMap(([key, { start, end }]) => {
    const own = text.slice(start, end);
    const member = entryIn(optional, key);
    const shown = member === undefined ? own : inForm(member, own, value[key]);
    return shown === undefined ? [] : [`${JSON.stringify(key)}:${shown}`];
  });
  return `{${kept.join(',')}}`;
}
