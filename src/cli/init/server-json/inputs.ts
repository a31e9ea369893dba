import { elementsOf, isRecord, shownValue } from '../../../core/foreign.ts';
import { literalText } from '../values.ts';
import { isSecretName, type Variables } from '../variables.ts';
import { descriptionOf, type Entry, entriesOf, flagOf, memberOf, onOneLine, textOf } from './fields.ts';

/** `{name}` in a value; publishers who know shells write `${name}`. */
const TEMPLATE = /\$?\{([A-Za-z_][\w.-]*)\}/g;

/** A reference to a variable that a value was replaced by. */
const REFERENCE = /\$\{(\w+)(?::-)?\}/g;

/** Choices that a comment names. */
const MOST_CHOICES = 20;

interface Asked {
  /** Name that the variable gets if it is free. */
  readonly name: string;
  /** Where its value is used, for people: "`env`". */
  readonly place: string;
  readonly placeholder?: string | undefined;
  /** What the value must look like, for people. */
  readonly form?: string | undefined;
}

interface InputOptions extends Asked {
  /** Whether a secret that the file does not call required gets a variable that may stay empty. */
  readonly keepsOptionalSecrets?: boolean;
}

/**
 * Values of one server: texts of the file, with references to variables in place of what the user has to provide. The form of
 * texts is that of a configuration.
 */
export class Inputs {
  /** What the file allows but does not require, without a value. */
  readonly unset: string[] = [];
  /** Variables without a value which the server needs, or may need: the file does not say. */
  readonly awaited: string[] = [];
  /** Values of the file that became variables, because it calls them secrets. */
  readonly #filled = new Map<string, string>();
  readonly #owner: string;
  readonly #source: string;
  readonly #variables: Variables;

  constructor(owner: string, source: string, variables: Variables) {
    this.#owner = owner;
    this.#source = source;
    this.#variables = variables;
  }

  /**
   * The value of an input; undefined if it has none and needs none.
   *
   * @throws NotImported if a member is not a string
   */
  valueOf(input: Entry, options: InputOptions): string | undefined {
    const value = textOf(input, 'value');
    if (value !== undefined && value !== '') return this.#fixed(value, input, options);
    const isSecret = flagOf(input, 'isSecret') === true;
    const fallback = textOf(input, 'default');
    if (fallback !== undefined && fallback !== '')
      return isSecret ? this.#ask(input, options, { value: fallback }) : literalText(fallback);
    if (flagOf(input, 'isRequired') === true) return this.#ask(input, options, {});
    const isLikelySecret = flagOf(input, 'isSecret') ?? isSecretName(options.name);
    if (options.keepsOptionalSecrets === true && isLikelySecret)
      return this.#ask(input, options, { placeholder: '' });
    return value === '' ? '' : undefined;
  }

  /** A text with its `{names}`: those of `variables`, or every one if nothing else can have been meant. */
  template(text: string, input: Entry, every: boolean, asked: (id: string, at: number) => Asked): string {
    const known = memberOf(input, 'variables');
    const values = new Map<string, string>();
    let end = 0;
    let result = '';
    for (const match of text.matchAll(TEMPLATE)) {
      const [whole, id = ''] = match;
      const own: unknown = isRecord(known) && Object.hasOwn(known, id) ? known[id] : undefined;
      if (!isRecord(own) && !every) continue;
      const variable: Entry = isRecord(own) ? own : {};
      const value = values.get(id) ?? this.#variable(variable, asked(id, match.index));
      values.set(id, value);
      result += literalText(text.slice(end, match.index)) + value;
      end = match.index + whole.length;
    }
    return result + literalText(text.slice(end));
  }

  /** A text with the values of the file in place of their variables: what it does, if the user changes nothing. */
  resolved(text: string): string {
    return text.replaceAll(REFERENCE, (reference, name: string) => this.#filled.get(name) ?? reference);
  }

  #fixed(value: string, input: Entry, options: InputOptions): string {
    const asked = (id: string): Asked => ({ ...options, name: `${this.#owner}_${id}` });
    const isHeader = options.place === 'headers';
    const text = this.template(value, input, isHeader, asked);
    // A secret that its publisher has written into the file.
    if (flagOf(input, 'isSecret') === true && text === literalText(value))
      return this.#ask(input, options, { value });
    return text;
  }

  #variable(variable: Entry, asked: Asked): string {
    const value = textOf(variable, 'value') ?? textOf(variable, 'default');
    if (value === undefined || value === '') return this.#ask(variable, asked, {});
    return flagOf(variable, 'isSecret') === true ? this.#ask(variable, asked, { value }) : literalText(value);
  }

  #ask(
    input: Entry,
    { name, place, placeholder, form = '' }: Asked,
    known: { readonly value?: string; readonly placeholder?: string },
  ): string {
    const choices = elementsOf(memberOf(input, 'choices')).slice(0, MOST_CHOICES).map(shownValue).join(', ');
    const about = [form, descriptionOf(input), choices === '' ? '' : `one of ${onOneLine(choices)}`].filter(
      (text) => text !== '',
    );
    const from = `\`${place}\` of ${this.#owner} in ${this.#source}${about.length > 0 ? `: ${about.join('; ')}` : ''}`;
    const chosen = { ...(placeholder === undefined ? {} : { placeholder }), ...known };
    const variable = this.#variables.fresh(name, this.#owner, from, { value: undefined, ...chosen });
    if (known.value !== undefined) this.#filled.set(variable, known.value);
    if (known.value === undefined && !(known.placeholder === '' && flagOf(input, 'isRequired') === false))
      this.awaited.push(variable);
    return known.placeholder === '' ? `$\{${variable}:-}` : `$\{${variable}}`;
  }
}

/** The words of one argument. */
export interface Argument {
  readonly words: readonly string[];
  readonly isPositional: boolean;
}

/**
 * The arguments of a list. An option and its value are two words, as VS Code passes them (microsoft/clarity-mcp-server#20), although
 * the description of the schema says `--flag={value}`: an option whose name ends with `=` is one word with its value. An option that
 * is true or false is given or left out.
 *
 * @throws NotImported if the list is not valid
 */
export function argumentsOf(entry: Entry, list: string, inputs: Inputs): readonly Argument[] {
  return entriesOf(entry, list).flatMap((input): Argument[] => {
    const name = textOf(input, 'name');
    const type = textOf(input, 'type') ?? (name === undefined ? 'positional' : 'named');
    if (type === 'named' && name !== undefined && name !== '') {
      const words = named(name, input, inputs);
      return words === undefined ? [] : [{ words, isPositional: false }];
    }
    const hint = textOf(input, 'valueHint') ?? 'argument';
    const value = inputs.valueOf(input, { name: hint, place: 'args' });
    if (value === undefined) inputs.unset.push(hint);
    return value === undefined ? [] : [{ words: [value], isPositional: true }];
  });
}

function named(name: string, input: Entry, inputs: Inputs): readonly string[] | undefined {
  const flag = literalText(name);
  const fixed = textOf(input, 'value') ?? textOf(input, 'default');
  if (textOf(input, 'format') === 'boolean' && (fixed === undefined || /^(?:true|false|)$/.test(fixed))) {
    if (fixed === 'true' || (fixed === undefined && flagOf(input, 'isRequired') === true)) return [flag];
    if (fixed === undefined) inputs.unset.push(name);
    return undefined;
  }
  // Nothing but a name: an option without a value.
  const isBare = ['description', 'format', 'placeholder', 'choices', 'valueHint', 'isRequired'].every(
    (key) => memberOf(input, key) === undefined,
  );
  if (fixed === '' || (fixed === undefined && isBare)) return [flag];
  const value = inputs.valueOf(input, { name: name.replaceAll(/^-+|=$/g, ''), place: 'args' });
  if (value === undefined) inputs.unset.push(name);
  if (value === undefined) return undefined;
  return flag.endsWith('=') ? [flag + value] : [flag, value];
}
