import { isCredentialVariable, isSensitiveName, redactQuery, tokensIn } from '../../core/credentials.ts';
import { PLACEHOLDER } from '../../server/config/lint.ts';

/** A variable that the configuration refers to and the environment does not have. */
export interface Variable {
  readonly name: string;
  /** Undefined if the file refers to a variable that has no value. */
  readonly value: string | undefined;
  /** Where it comes from, for people. */
  readonly from: string;
  /** Its value until it is filled in, if any other would not be valid; empty if it need not be filled in. */
  readonly placeholder?: string | undefined;
}

/** Value of variables for which no value is known: an empty one would be refused as a key. */
export const UNKNOWN_VALUE = PLACEHOLDER;

/** Variables that imported files need, by name. A value belongs to one name, and a name to one value. */
export class Variables {
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #known = new Map<string, Variable>();
  readonly #offered = new Map<string, string>();
  readonly #reserved = new Set<string>();
  readonly #needed = new Set<string>();

  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#env = env;
  }

  /**
   * Takes a secret out of a file. Returns the reference that replaces it, as `${NAME}`. The name begins with that of its owner:
   * a general one, such as TOKEN, is likely to be in the environment of some terminal, which takes precedence over the file.
   */
  reference(preferred: string, value: string, owner: string, from: string): string {
    const own = ownName(preferred, owner);
    for (let index = 0; ; index += 1) {
      const name = nameAt(own, index);
      const known = this.#known.get(name)?.value ?? this.#env[name];
      if (known !== undefined && known !== value) continue;
      if (this.#reserved.has(name) && (known ?? this.#offered.get(name)) !== value) continue;
      if (known === undefined || !(name in this.#env)) this.#known.set(name, { name, value, from });
      return `$\{${name}}`;
    }
  }

  /**
   * Notes a variable for a value that a file from elsewhere asks for. Its name begins with that of its owner, and nothing else has
   * it: whoever wrote the file chose the preferred one, and could otherwise choose that of any secret in the environment, also in
   * that of a gateway which starts later.
   */
  fresh(
    preferred: string,
    owner: string,
    from: string,
    known: Pick<Variable, 'value' | 'placeholder'>,
  ): string {
    const own = ownName(preferred, owner);
    for (let index = 0; ; index += 1) {
      const name = nameAt(own, index);
      if (this.#env[name] !== undefined || this.#known.has(name) || this.#reserved.has(name)) continue;
      this.#known.set(name, { name, from, ...known });
      return name;
    }
  }

  /**
   * Names that a file refers to, or that stand for keys which it does not have. A secret of the file gets another one: with the
   * same, it would be sent wherever the reference is.
   */
  reserve(names: Iterable<string>): void {
    for (const name of names) if (!this.#known.has(name)) this.#reserved.add(name);
  }

  /** Notes a reference that a file has. `placeholder`: its value until it is filled in. */
  need(name: string, from: string, placeholder?: string): void {
    this.#needed.add(name);
    if (this.#env[name] !== undefined || this.#known.has(name)) return;
    this.#known.set(name, { name, value: this.#offered.get(name), from, placeholder });
  }

  /** Whether what was imported refers to a variable. */
  isNeeded(name: string): boolean {
    return this.#needed.has(name);
  }

  /** Notes the value of a variable that is not in the environment, in case a reference needs it. */
  offer(name: string, value: string): void {
    this.#offered.set(name, value);
  }

  /** Gives variables the values that the user has typed. */
  fill(values: ReadonlyMap<string, string>): void {
    for (const [name, value] of values) {
      const known = this.#known.get(name);
      if (known !== undefined) this.#known.set(name, { ...known, value });
    }
  }

  /** The value of a variable, if it is known. */
  valueOf(name: string): string | undefined {
    return this.#env[name] ?? this.#known.get(name)?.value ?? this.#offered.get(name);
  }

  /** Whether a variable has a value. */
  has(name: string): boolean {
    return this.valueOf(name) !== undefined;
  }

  /** Every variable that is not in the environment. */
  get missing(): readonly Variable[] {
    return [...this.#known.values()];
  }

  /** The environment with these variables. */
  get environment(): Record<string, string | undefined> {
    const added = this.missing.map(({ name, value, placeholder }) => [
      name,
      value ?? placeholder ?? UNKNOWN_VALUE,
    ]);
    return { ...this.#env, ...Object.fromEntries(added) };
  }
}

/** A variable's name that begins with the name of its owner. */
function ownName(preferred: string, owner: string): string {
  const name = variableName(preferred);
  return name.startsWith(`${variableName(owner)}_`) ? name : variableName(`${owner}_${preferred}`);
}

/** The names to try in turn: `A`, `A_2`, `A_3`. */
const nameAt = (name: string, index: number): string => (index === 0 ? name : `${name}_${index + 1}`);

/** Text as the name of an environment variable. */
export function variableName(text: string): string {
  const name = text.replaceAll(/([a-z])([A-Z])/g, '$1_$2').replaceAll(/[^A-Za-z0-9]+/g, '_');
  const trimmed = name.replaceAll(/^_+|_+$/g, '').toUpperCase();
  return /^\d/.test(trimmed) || trimmed === '' ? `KEY_${trimmed}` : trimmed;
}

/** Values of variables that are not secrets by their form: numbers, words, paths, and URLs without credentials. */
const PLAIN_VALUE =
  /^(?:|true|false|\d{1,9}|[a-z]{1,16}(?:-[a-z]{1,16})?|https?:\/\/[^@?\s]*|(?:[.~]?\/|[A-Za-z]:\\)[^\n]*)$/;

export const isSecretName = (name: string): boolean => isCredentialVariable(name) || isSensitiveName(name);

/** Whether a variable of a server may be a secret. When in doubt it is: most of them are keys. */
export function isSecretVariable(name: string, value: string): boolean {
  return isSecretName(name) || !PLAIN_VALUE.test(value) || isToken(value);
}

/** Prefixes of keys of well-known services: GitHub, Slack, OpenAI, Anthropic, GitLab, Google, AWS, npm, Stripe. */
const TOKEN_PREFIX =
  /(?:^|[\s=:])(?:gh[pousr]_|github_pat_|xox[abprs]-|sk-|sk_(?:live|test)_|glpat-|AIza|AKIA|npm_|rk_live_)[\w-]{8,}/;
/** A long word of mixed letters and digits, which no package, option or path is. */
const RANDOM_WORD = /^(?=.*\d)(?=.*[a-zA-Z])[A-Za-z0-9_+=]{24,}$/;
const PASSWORD_IN_URL = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]*:[^/?#\s]+@/i;

/** Whether a text is a secret by its form alone. */
export function isToken(text: string): boolean {
  if (TOKEN_PREFIX.test(text) || RANDOM_WORD.test(text) || PASSWORD_IN_URL.test(text)) return true;
  return [...tokensIn(text)].length > 0 || (/^https?:/i.test(text) && redactQuery(text) !== text);
}
