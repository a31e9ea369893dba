/** A path of members that do not count: names and indexes; `*` is any one of them, `**` any number of them. */
type Pattern = readonly string[];

/** A path of an ignored member is none. */
export class IgnoredPathError extends TypeError {}

/** Members of JSON that are ignored where values are compared. */
export class Ignored {
  readonly #patterns: readonly Pattern[];

  private constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns;
  }

  /** Of paths such as `metadata.run`, `messages[*].id` and `**.created`. @throws IgnoredPathError */
  static of(paths: readonly string[]): Ignored {
    return new Ignored(paths.map(patternOf));
  }

  and(paths: readonly string[]): Ignored {
    return new Ignored([...this.#patterns, ...paths.map(patternOf)]);
  }

  /** Whether the value at which we are is ignored. */
  get isHere(): boolean {
    return this.#patterns.some(({ length }) => length === 0);
  }

  /** What is ignored in a member of the value at which we are. */
  in(name: string | number): Ignored {
    if (this.#patterns.length === 0) return this;
    return new Ignored(this.#patterns.flatMap((pattern) => stepsInto(pattern, String(name))));
  }
}

function stepsInto(pattern: Pattern, name: string): Pattern[] {
  const [first, ...rest] = pattern;
  if (first === '**') return [pattern, ...stepsInto(rest, name)];
  return first === '*' || first === name ? [rest] : [];
}

const PART = /^(?:\.?([^.[\]]+)|\[(\d+|\*)\]|\["([^"\]]+)"\])/;

function patternOf(path: string): Pattern {
  const parts: string[] = [];
  for (let rest = path; rest !== ''; ) {
    const match = PART.exec(rest);
    const part = match?.[1] ?? match?.[2] ?? match?.[3];
    if (match === null || part === undefined)
      throw new IgnoredPathError(
        `${path}: expected a path such as metadata.run, messages[*].id or **.created`,
      );
    parts.push(part);
    rest = rest.slice(match[0].length);
  }
  if (parts.length === 0) throw new IgnoredPathError('a path of an ignored member is empty');
  return parts;
}
