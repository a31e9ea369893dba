import type { z } from 'zod';
import type { Path } from '../../../core/diagnostic.ts';
import { membersOf } from '../../../core/foreign.ts';
import {
  describeKind,
  describeSchema,
  describeType,
  exampleText,
  joinWords,
} from '../../../core/schema/describe-types.ts';
import { isSecretAt } from '../../../core/schema/secrets.ts';
import { fittingObjects, isSwitch, keysOf, type Schema, valueAt } from '../../../core/schema/walk.ts';
import { nearest } from '../../../core/suggest.ts';
import type { YamlSource } from '../../../core/yaml/source.ts';
import { adviseOnKey, type Base, mappingAdvice, namesAdvice, schemasIn } from './advice.ts';
import { correctionOf } from './correction.ts';
import {
  checkFinding,
  custom,
  exclusive,
  type Finding,
  type Issue,
  type IssueParams,
  MAX_FINDINGS,
  oneOf,
} from './finding.ts';
import { Places } from './places.ts';
import { judgeUnion, rivalOf, unionBranches } from './union.ts';
import {
  describeFormat,
  describeSize,
  isNumeric,
  numberHelp,
  rangeHelp,
  truthOf,
  wrongForm,
} from './value-messages.ts';

/** Turns zod's issues with `value` into messages. `root` is the schema of the whole file. */
export class IssueTranslator {
  readonly #root: Schema;
  readonly #source: YamlSource;
  readonly #value: unknown;
  readonly #places: Places;
  /** Where parts at the top may be moved to; each is looked up once, because it may be long. */
  readonly #moved = new Map<string, string>();

  constructor(root: Schema, source: YamlSource, value: unknown) {
    this.#root = root;
    this.#source = source;
    this.#value = value;
    this.#places = new Places(root);
  }

  /** The findings for one issue, whose path is relative to `base`. */
  translate(issue: Issue, base: Base): Finding[] {
    const path = [...base.path, ...issue.path.filter((part) => typeof part !== 'symbol')];
    const value = valueAt(this.#value, path);
    if (value === undefined && path.length > 0 && issue.code !== 'custom') return [this.#missing(path, base)];
    switch (issue.code) {
      case 'unrecognized_keys':
        return this.#unknownKeys(fittingObjects(schemasIn(base, path), value), path, issue.keys);
      case 'invalid_type': {
        // The schema has details that the issue lacks, for example that a number must be whole.
        const schemas = schemasIn(base, path);
        const expected = joinWords(schemas.map(describeSchema)) || describeType(issue.expected);
        return [this.#wrongType(path, expected, value, issue.message, schemas)];
      }
      case 'invalid_value':
        return [this.#wrongValue(path, issue.values, value, issue.message)];
      case 'invalid_union':
        return this.#union(issue, path, value, base);
      case 'invalid_key':
        return [this.#wrongKey(path, issue.issues[0])];
      case 'custom':
        return [custom(path, issue.message, (issue.params ?? {}) as IssueParams)];
      case 'invalid_format':
        return [
          checkFinding(path, issue, {
            ...describeFormat(issue),
            ...(typeof value === 'string' && correctionOf(issue, value, this.#isPrivate(path))),
          }),
        ];
      case 'too_big':
      case 'too_small': {
        const help = typeof value === 'number' ? rangeHelp(schemasIn(base, path)) : undefined;
        return [checkFinding(path, issue, { ...describeSize(issue), ...(help !== undefined && { help }) })];
      }
      case 'not_multiple_of':
        return [checkFinding(path, issue, describeSize(issue))];
      case 'invalid_element':
        return issue.issues.flatMap((each) => this.translate(each, { ...base, path }));
    }
  }

  #missing(path: Path, base: Base): Finding {
    const key = String(path.at(-1));
    const [schema] = schemasIn(base, path);
    const line = `${key}:${schema ? exampleText(schema) : ' …'}`;
    return {
      code: 'AGW0103',
      path,
      at: 'key',
      missing: true,
      message: `required field \`${key}\` is missing`,
      ...(path.length > 1 && { label: `\`${key}\` is required here` }),
      help: `add the line \`${line}\`${this.#movedHelp(path)}`,
    };
  }

  /** For a field that is missing in a part at the top, or an item of it, which another place would accept as it is. */
  #movedHelp([key, ...inside]: Path): string {
    if (typeof key !== 'string' || inside.length > 2) return '';
    let place = this.#moved.get(key);
    if (place === undefined) {
      place = this.#places.ofPart(key, valueAt(this.#value, [key]), true) ?? '';
      this.#moved.set(key, place);
    }
    return place === '' ? '' : `, or move \`${key}\` to ${place}`;
  }

  #unknownKeys(objects: readonly Schema[], path: Path, keys: readonly string[]): Finding[] {
    return keys.slice(0, MAX_FINDINGS).map((key) => this.#unknownKey(objects, path, key));
  }

  #unknownKey(objects: readonly Schema[], path: Path, key: string): Finding {
    if (keysOf(objects).includes(key)) {
      const rival = rivalOf(objects, key, Object.keys(valueAt(this.#value, path) ?? {}));
      if (rival !== undefined) return exclusive(path, rival, key);
    }
    const advice = adviseOnKey(
      { root: this.#root, places: this.#places },
      objects,
      path,
      key,
      valueAt(this.#value, [...path, key]),
    );
    const { suggestion } = advice;
    const siblings = Object.keys(valueAt(this.#value, path) ?? {});
    return {
      code: 'AGW0101',
      path: [...path, key],
      at: 'key',
      message: `unknown field \`${key}\``,
      label: 'not known here',
      help: advice.help,
      notes: [advice.note],
      meant: suggestion === undefined ? undefined : [...path, suggestion],
      remedy:
        suggestion === undefined || siblings.includes(suggestion)
          ? undefined
          : { kind: 'rename', to: suggestion },
    };
  }

  #wrongType(
    path: Path,
    expected: string,
    value: unknown,
    message: string,
    schemas: readonly Schema[] = [],
  ): Finding {
    if (value === null && path.length === 0) {
      return {
        ...{ code: 'AGW0102', path, at: 'value', message: 'the file is empty' },
        help: '`agctl init` creates a configuration',
      };
    }
    if (value === null && schemas.some(isSwitch))
      return {
        ...{ code: 'AGW0102', path, at: 'value', message: `expected ${expected}, found nothing` },
        help: `write \`${path.at(-1)}: {}\` to turn it on, or delete the key`,
      };
    const form = wrongForm(
      expected,
      value,
      schemas,
      String(path.at(-1)),
      this.#source.isFromEnvironment(path),
    );
    const [key] = path;
    const place = path.length === 1 && typeof key === 'string' ? this.#places.ofPart(key, value) : undefined;
    if (place !== undefined)
      return {
        ...{ code: 'AGW0102', path, at: 'key' },
        message: message || `expected ${expected}, found ${describeKind(value)}`,
        help: `\`${key}\` with these fields belongs in ${place}`,
      };
    const help = form === undefined ? this.#typeHelp(path, expected, value) : { help: form.help };
    const isMappingWanted = help.help === undefined && expected === 'a mapping';
    return {
      code: 'AGW0102',
      path,
      at: 'value',
      message: message || `expected ${form?.expected ?? expected}, found ${describeKind(value)}`,
      ...(isMappingWanted &&
        (mappingAdvice(schemas, this.#isPrivate(path) ? undefined : value) ??
          namesAdvice(schemas, String(path.at(-1)), value))),
      ...help,
    };
  }

  #typeHelp(path: Path, expected: string, value: unknown): Pick<Finding, 'help' | 'remedy'> {
    if (value === null) return { help: this.#nothingHelp(path, expected) };
    const wantsText = /\bstring\b/.test(expected);
    const isFromEnvironment = this.#source.isFromEnvironment(path);
    if (
      wantsText &&
      (typeof value === 'number' || typeof value === 'boolean') &&
      this.#source.isPlain(path)
    ) {
      return isFromEnvironment
        ? { help: 'put the reference in quotes, so that the variable is always read as a string' }
        : { help: 'put it in quotes to make it a string', remedy: { kind: 'quote' } };
    }
    if (expected.startsWith('a list') && !Array.isArray(value))
      return { help: 'write a list: `[a, b]`, or each entry on a line that starts with `- `' };
    if (isFromEnvironment) return this.#variableHelp(path, expected, value);
    if (wantsText && Object.keys(membersOf(value)).join() === 'file')
      return {
        help: 'no file can be named here: write the value, or a variable of the environment, `$NAME`',
      };
    if (typeof value !== 'string')
      return /^\{+\s*\$?\w+\s*\}+$/.test(this.#written(path))
        ? {
            help: `in YAML, \`{\` begins a mapping; a variable of the environment is \`$NAME\` or \`\${NAME}\``,
          }
        : {};
    const truth = truthOf(value);
    if (expected.includes('`true`') && truth !== undefined)
      return { help: `write \`${truth}\`, without quotes`, remedy: { kind: 'replace', by: truth } };
    if (!/number/.test(expected)) return {};
    if (isNumeric(value) && !this.#source.isPlain(path))
      return { help: 'remove the quotes', remedy: { kind: 'unquote' } };
    return { help: numberHelp(String(path.at(-1)), value) };
  }

  /** Help for a value that is a variable, or contains some. Quotes and the variable are the reader's own. */
  #variableHelp(path: Path, expected: string, value: unknown): Pick<Finding, 'help'> {
    const wants = /number/.test(expected) ? 'number' : expected.includes('`true`') ? 'flag' : undefined;
    if (wants === undefined) return {};
    const isMeant =
      typeof value === 'string' && (wants === 'number' ? isNumeric(value) : /^(?:true|false)$/.test(value));
    if (isMeant && !this.#source.isPlain(path))
      return {
        help: this.#written(path).includes('{')
          ? 'write the reference without quotes, as `$NAME`, which is also possible inside `{ }` and `[ ]`'
          : 'write the reference without quotes',
      };
    return {
      help: `the variable must have ${wants === 'number' ? 'a number' : '`true` or `false`'} as its value`,
    };
  }

  #nothingHelp(path: Path, expected: string): string {
    if (this.#source.isFromEnvironment(path))
      return `the variable is empty: set it, or ${/\bstring\b/.test(expected) ? 'put the reference in quotes, for an empty string' : 'delete the key'}`;
    const { text } = this.#source;
    const rest = text.slice(this.#source.keyRange(path).end.offset).split('\n', 1)[0] ?? '';
    const [, mark] = /^["']?\s*:\s+([#&])\S/.exec(rest) ?? [];
    if (mark === '#') return '`#` begins a comment: if it is part of the value, put the value in quotes';
    if (mark === '&')
      return '`&` begins the name of an anchor: if it is part of the value, put the value in quotes';
    return 'give it a value, or delete the key';
  }

  #written(path: Path): string {
    const { start, end } = this.#source.valueRange(path);
    return this.#source.text.slice(start.offset, end.offset);
  }

  #wrongValue(path: Path, values: readonly unknown[], value: unknown, message: string): Finding {
    const allowed = values.map(String);
    const isScalar = value !== null && typeof value !== 'object';
    if (!isScalar)
      return this.#wrongType(path, joinWords(allowed.map((each) => `\`${each}\``)), value, message);
    const near = allowed.length > 1 ? nearest(String(value), allowed) : undefined;
    return {
      code: 'AGW0104',
      path,
      at: 'value',
      message: message || `${this.#shown(path, value)} is not an allowed value`,
      label: labelOf(allowed, message),
      help: near === undefined ? undefined : `a value with a similar name exists: \`${near}\``,
      notes: allowed.length === 1 ? undefined : [`allowed values: ${allowed.join(', ')}`],
      remedy:
        near === undefined || this.#source.isFromEnvironment(path)
          ? undefined
          : { kind: 'replace', by: near },
    };
  }

  /** The value in backquotes, unless it could be a secret or is too long. */
  #shown(path: Path, value: unknown): string {
    const text = String(value);
    return this.#isPrivate(path) || text.length > 60 || text === '' ? 'this' : `\`${text}\``;
  }

  #isPrivate(path: Path): boolean {
    return this.#source.isFromEnvironment(path) || isSecretAt(this.#root, path);
  }

  #wrongKey(path: Path, inner: Issue | undefined): Finding {
    const key = String(path.at(-1));
    const words = inner?.code === 'invalid_format' ? describeFormat(inner) : undefined;
    return {
      code: 'AGW0104',
      path,
      at: 'key',
      message: `\`${key}\` is not a valid name here`,
      label: inner?.message || words?.label,
      notes: words?.notes,
    };
  }

  #union(issue: z.core.$ZodIssueInvalidUnion, path: Path, value: unknown, base: Base): Finding[] {
    if (issue.discriminator !== undefined) {
      const options = 'options' in issue ? (issue.options ?? []) : [];
      return [this.#wrongValue(path, options, value, issue.message)];
    }
    if ('matches' in issue)
      return [{ code: 'AGW0105', path, at: 'key', message: 'this value matches several alternatives' }];
    const schemas = schemasIn(base, path);
    const branches = unionBranches(schemas, issue.errors);
    const verdict = judgeUnion(branches, value);
    switch (verdict.kind) {
      case 'type':
        return [this.#wrongType(path, joinWords(schemas.map(describeSchema)), value, issue.message, schemas)];
      case 'entry':
        return [this.#wrongType(path, 'a list', value, issue.message)];
      case 'values':
        return [this.#wrongValue(path, verdict.values, value, issue.message)];
      case 'branch': {
        const inside = { schema: verdict.branch.schema, path };
        return verdict.branch.issues.flatMap((each) => this.translate(each, inside));
      }
      case 'unknown':
        return this.#unknownKeys(verdict.objects, path, verdict.keys);
      case 'choice':
        return [oneOf(path, verdict.keys, issue.message)];
      case 'exclusive':
        return [exclusive(path, verdict.key, verdict.other)];
    }
  }
}

/** A message of the author may be about a union, which accepts more than its only word. */
function labelOf(allowed: readonly string[], message: string): string | undefined {
  if (allowed.length > 1) return 'not one of the allowed values';
  return message === '' ? `only \`${allowed[0]}\` is allowed` : undefined;
}
