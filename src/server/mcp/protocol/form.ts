import { entryIn, isRecord } from '../../../core/foreign.ts';
import { elements, members } from '../../kernel/json/json-text.ts';

/** What clients require of a value, and what becomes of one that they cannot read. */
export interface Shape {
  /** Whether clients can read a value, apart from its members and elements. */
  readonly is: (value: unknown) => boolean;
  /** Members of an object without which clients refuse it. */
  readonly required?: Readonly<Record<string, Form>>;
  /** Optional members of an object: those that clients cannot read are left out. Clients ignore others. */
  readonly members?: Readonly<Record<string, Form>>;
  /** Elements of a list: those that clients cannot read are left out. */
  readonly items?: Form;
  /** Elements of a list that clients accept: those after them are left out. */
  readonly most?: number;
  /**
   * The JSON text of what replaces a value that clients cannot read, or that has not what is required; undefined if nothing can. Of an
   * element, any number of elements with commas between them.
   */
  readonly repair?: (value: unknown, text: string) => string | undefined;
}

/** Several shapes, of which a value has one. */
export interface Choice {
  readonly all: readonly Form[];
  readonly of: (value: unknown) => Shape;
}

export type Form = Shape | Choice;

const shapeFor = (form: Form, value: unknown): Shape => ('of' in form ? form.of(value) : form);

/** Names of all members, at any depth, that have objects whose own members a form describes. */
export function describedMembers(forms: readonly Form[]): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (form: Form): boolean => {
    if ('of' in form) return form.all.map(add).includes(true);
    for (const [key, member] of Object.entries({ ...form.required, ...form.members }))
      if (add(member)) names.add(key);
    const hasDescribedItems = form.items !== undefined && add(form.items);
    return hasDescribedItems || form.required !== undefined || form.members !== undefined;
  };
  for (const form of forms) add(form);
  return names;
}

/** Whether clients can read a value as it is. */
export function hasForm(form: Form, value: unknown): boolean {
  const { is, required, members: optional, items, most = Number.POSITIVE_INFINITY } = shapeFor(form, value);
  if (!is(value)) return false;
  if (Array.isArray(value))
    return items === undefined || (value.length <= most && value.every((item) => hasForm(items, item)));
  if (!isRecord(value)) return true;
  for (const key in required) {
    const member = entryIn(required, key);
    if (member !== undefined && !hasForm(member, value[key])) return false;
  }
  for (const key in optional) {
    const member = Object.hasOwn(value, key) ? entryIn(optional, key) : undefined;
    if (member !== undefined && !hasForm(member, value[key])) return false;
  }
  return true;
}

/** How many elements of lists have to be replaced or left out, apart from what is left out of them. */
export function unreadableElements(form: Form, value: unknown): number {
  const { required, members: optional, items } = shapeFor(form, value);
  let count = 0;
  if (Array.isArray(value)) {
    if (items === undefined) return 0;
    for (const item of value) {
      if (!shapeFor(items, item).is(item)) count += 1;
      count += unreadableElements(items, item);
    }
  } else if (isRecord(value)) {
    for (const own of [required, optional])
      for (const key in own) {
        const member = Object.hasOwn(value, key) ? entryIn(own, key) : undefined;
        if (member !== undefined) count += unreadableElements(member, value[key]);
      }
  }
  return count;
}

/** The JSON text of a value, of which `value` was parsed, in the form that clients can read; undefined if there is none. */
export function inForm(form: Form, text: string, value: unknown): string | undefined {
  if (hasForm(form, value)) return text;
  const { is, required = {}, members: optional = {}, items, most, repair } = shapeFor(form, value);
  if (!is(value)) return repair?.(value, text);
  if (Array.isArray(value) && items !== undefined) {
    const kept = elements(text)
      .slice(0, most)
      .flatMap(({ start, end }, index) => inForm(items, text.slice(start, end), value[index]) || []);
    return `[${kept.join(',')}]`;
  }
  if (!isRecord(value)) return text;
  if (Object.keys(required).some((key) => !Object.hasOwn(value, key))) return repair?.(value, text);
  const kept: string[] = [];
  for (const [key, { start, end }] of members(text)) {
    const own = text.slice(start, end);
    const member = entryIn(required, key) ?? entryIn(optional, key);
    const shown = member === undefined ? own : inForm(member, own, value[key]);
    if (shown !== undefined) kept.push(`${JSON.stringify(key)}:${shown}`);
    else if (Object.hasOwn(required, key)) return repair?.(value, text);
  }
  return `{${kept.join(',')}}`;
}
