import { isRecord } from '../../../core/foreign.ts';
import { type Json, Untranslatable } from './chat-format.ts';
import { isBlank, isEmpty } from './event-data.ts';
import { rememberPath } from './refusals.ts';

/** Members that have no equivalent and no influence on the answer, with the reason. They are not translated. */
export type Hints = Readonly<Record<string, string>>;

/**
 * Reads an object of untrusted JSON. `read` takes the members that it knows; one that it did not take is refused by its
 * path, so that no translation drops a member silently. `path` is '' for the body. Throws `Untranslatable`.
 */
export function readMembers<T>(value: unknown, path: string, read: (members: MemberReader) => T): T {
  return MemberReader.read(value, path, true, read);
}

/** Like `readMembers` for a provider's response, which may have members that no format knows: those are ignored. */
export function readKnownMembers<T>(value: unknown, path: string, read: (members: MemberReader) => T): T {
  return MemberReader.read(value, path, false, read);
}

/** The members of one object. A member that is null counts as absent, which is what all chat APIs do. */
export class MemberReader {
  readonly path: string;
  readonly #members: Json;
  readonly #isStrict: boolean;
  readonly #untaken: Set<string>;

  static read<T>(value: unknown, path: string, isStrict: boolean, read: (members: MemberReader) => T): T {
    if (!isRecord(value)) throw new Untranslatable(path === '' ? 'body' : path, 'expected an object');
    const members = new MemberReader(value, path, isStrict);
    const result = read(members);
    if (isStrict) members.#refuseUntaken();
    rememberPath(result, path);
    return result;
  }

  private constructor(members: Json, path: string, isStrict: boolean) {
    this.path = path;
    this.#members = members;
    this.#isStrict = isStrict;
    this.#untaken = new Set(Object.keys(members).filter((name) => !isAbsent(members[name])));
  }

  /** The member as it is; undefined if it is absent. */
  value(name: string): unknown {
    this.#untaken.delete(name);
    const value = this.#members[name];
    return isAbsent(value) || !Object.hasOwn(this.#members, name) ? undefined : value;
  }

  text(name: string): string | undefined {
    return this.#typed(name, 'a string', isString);
  }

  requiredText(name: string): string {
    return this.required(name, this.text(name));
  }

  number(name: string): number | undefined {
    return this.#typed(name, 'a number', isNumber);
  }

  flag(name: string): boolean | undefined {
    return this.#typed(name, 'true or false', isFlag);
  }

  /** One of `choices`; other values are refused with the value. */
  choice<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    return choices.find((choice) => choice === value) ?? this.refuse(name);
  }

  requiredChoice<const T extends string>(name: string, choices: readonly T[]): T {
    return this.required(name, this.choice(name, choices));
  }

  /** A JSON object whose members are not looked at, such as a JSON Schema. */
  json(name: string): Json | undefined {
    return this.#typed(name, 'an object', isRecord);
  }

  texts(name: string): readonly string[] | undefined {
    return this.#typed(name, 'a list of strings', isTexts);
  }

  /** A list of strings whose translatable values are `allowed`. */
  onlyTexts(name: string, allowed: readonly string[]): void {
    for (const [index, text] of (this.texts(name) ?? []).entries())
      if (!allowed.includes(text))
        throw new Untranslatable(
          `${this.pathOf(name)}[${index}]: ${JSON.stringify(text.slice(0, SHOWN_VALUE))}`,
        );
  }

  /** A map of numbers or strings. */
  map<T extends 'number' | 'string'>(
    name: string,
    type: T,
  ): Readonly<Record<string, T extends 'number' ? number : string>> | undefined {
    return this.#typed(
      name,
      `an object of ${type}s`,
      (value): value is Readonly<Record<string, T extends 'number' ? number : string>> =>
        isRecord(value) && Object.values(value).every((item) => typeof item === type),
    );
  }

  object<T>(name: string, read: (members: MemberReader) => T): T | undefined {
    const value = this.value(name);
    return value === undefined || (!isRecord(value) && this.#mayBeEmpty(value))
      ? undefined
      : MemberReader.read(value, this.pathOf(name), this.#isStrict, read);
  }

  requiredObject<T>(name: string, read: (members: MemberReader) => T): T {
    return this.required(name, this.object(name, read));
  }

  /** A list of objects; empty if it is absent. */
  objects<T>(name: string, read: (members: MemberReader, index: number) => T): T[] {
    const value = this.value(name) ?? [];
    if (!Array.isArray(value)) {
      if (this.#mayBeEmpty(value)) return [];
      throw new Untranslatable(this.pathOf(name), 'expected a list');
    }
    return value.flatMap((item: unknown, index) =>
      this.#mayBeEmpty(item)
        ? []
        : [
            MemberReader.read(item, `${this.pathOf(name)}[${index}]`, this.#isStrict, (members) =>
              read(members, index),
            ),
          ],
    );
  }

  /** A member that is a text or a list of objects, such as the content of a message. Undefined if it is absent. */
  textOrObjects<T>(
    name: string,
    ofText: (text: string) => T,
    read: (members: MemberReader) => T | readonly T[],
  ): T[] | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (typeof value === 'string') {
      const result = ofText(value);
      rememberPath(result, this.pathOf(name));
      return [result];
    }
    if (!Array.isArray(value)) {
      if (this.#mayBeEmpty(value)) return undefined;
      throw new Untranslatable(this.pathOf(name), 'expected a string or a list');
    }
    const parts: T[] = [];
    for (const part of this.objects<T | readonly T[]>(name, read)) {
      if (isList(part)) parts.push(...part);
      else parts.push(part);
    }
    return parts;
  }

  /** Takes members without reading them. */
  skip(hints: Hints): void {
    for (const name of Object.keys(hints)) this.#untaken.delete(name);
  }

  /** Takes a member whose only translatable values are those that a provider assumes without it. */
  only(name: string, ...values: readonly unknown[]): void {
    const value = this.value(name);
    if (value === undefined || values.some((allowed) => sameJson(allowed, value))) return;
    this.refuse(name);
  }

  /** Like `objects`, but not empty. */
  requiredObjects<T>(name: string, read: (members: MemberReader, index: number) => T): T[] {
    const objects = this.objects(name, read);
    return this.required(name, objects.length === 0 ? undefined : objects);
  }

  required<T>(name: string, value: T | undefined): T {
    if (value === undefined) throw new Untranslatable(this.pathOf(name), 'is missing');
    return value;
  }

  pathOf(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  /** Refuses a member: with its value, if that is short enough to name it. */
  refuse(name: string, why?: string): never {
    const value = this.#members[name];
    const isScalar = ['string', 'number', 'boolean'].includes(typeof value);
    const shown = isScalar && String(value).length <= SHOWN_VALUE ? `: ${JSON.stringify(value)}` : '';
    throw new Untranslatable(`${this.pathOf(name)}${shown}`, why);
  }

  /** Servers have empty values of any type in members that they do not use. Of clients, these are mistakes. */
  #mayBeEmpty(value: unknown): boolean {
    return !this.#isStrict && isEmpty(value);
  }

  #refuseUntaken(): void {
    for (const name of this.#untaken) {
      // Clients send back what they got, with all members. Those of the request itself are the client's own.
      if (this.path !== '' && isBlank(this.#members[name])) continue;
      throw new Untranslatable(this.pathOf(name));
    }
  }

  #typed<T>(name: string, expected: string, is: (value: unknown) => value is T): T | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!is(value)) {
      if (this.#mayBeEmpty(value)) return undefined;
      throw new Untranslatable(this.pathOf(name), `expected ${expected}`);
    }
    return value;
  }
}

/** Longer values in an error message hide what it says. */
const SHOWN_VALUE = 40;

const isString = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown): value is number => typeof value === 'number';
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean';
const isList = <T>(value: T | readonly T[]): value is readonly T[] => Array.isArray(value);

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function sameJson(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
