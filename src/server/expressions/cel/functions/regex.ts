import type { RE2JS } from 're2js';
import { LruMap } from '../../../../core/lru-map.ts';
import { re2 } from '../../../kernel/re2.ts';
import { CEL_LIMITS, charge, chargeText } from '../limits.ts';
import { asString, type FunctionDefinition, invalid, isString, method } from './define.ts';

/** RE2 runs in linear time, but compiling a pattern costs a hundred matches. */
const patternCache = new LruMap<string, RE2JS>(CEL_LIMITS.patterns);

/** Compiles a pattern of RE2. Throws `invalid_argument` when it is not one or is too long. */
function compilePattern(source: string): RE2JS {
  let regex = patternCache.get(source);
  if (regex === undefined) {
    if (source.length > CEL_LIMITS.patternLength)
      throw invalid(`a regular expression is longer than ${CEL_LIMITS.patternLength}`);
    try {
      regex = re2().compile(source);
    } catch {
      throw invalid('a regular expression is not valid RE2 (no look-around, no back-references)');
    }
    // Measured: 30 µs for a plain pattern, 2 to 6 ms for the worst of 1000 characters or 2000 instructions.
    charge(100 + source.length * 5 + regex.programSize() * 3);
    patternCache.set(source, regex);
  }
  return regex;
}

/** How many compiled patterns are kept. */
export const cachedPatternCount = (): number => patternCache.size;

/** Whether a text can be a pattern, for expressions that hold it literally. */
export function isValidPattern(source: string): boolean {
  try {
    re2().compile(source);
    return source.length <= CEL_LIMITS.patternLength;
  } catch {
    return false;
  }
}

// Most patterns match at 10 ns a character. Those that overflow re2js's state cache (`[ab]*a[ab]{100}`) fall back to a
// simulation that was measured at 15 ns per character and instruction: a 32nd of a step.
function chargeMatch(regex: RE2JS, length: number): void {
  charge(Math.ceil((1 + length * Math.max(4, regex.programSize())) / 32));
}

function matches(value: string, source: string): boolean {
  const regex = compilePattern(source);
  chargeMatch(regex, value.length);
  return regex.test(value);
}

/** Replaces the first match. `$1` and `${name}` stand for groups. */
function regexReplace(value: string, source: string, replacement: string): string {
  const regex = compilePattern(source);
  chargeMatch(regex, value.length);
  // Each `$` may stand for the whole text.
  chargeText(value.length + replacement.length + (replacement.split('$').length - 1) * value.length);
  return regex.matcher(value).replaceFirst(replacement);
}

/** Regular expressions: always RE2, because both pattern and text may come from a client. */
export const regex: readonly FunctionDefinition[] = [
  method(isString, 'matches', 1, (value, source) => matches(value, asString(source))),
  method(isString, 'regexReplace', 2, (value, source, replacement) =>
    regexReplace(value, asString(source), asString(replacement)),
  ),
];
