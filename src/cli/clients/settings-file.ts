import { createRequire } from 'node:module';
import { parse as parseToml } from 'smol-toml';
import { isRecord, membersOf } from '../../core/foreign.ts';

type JsoncParser = typeof import('jsonc-parser');
let library: JsoncParser | undefined;

/** Loads jsonc-parser at the first file: its module for `import` cannot be loaded by Node.js. */
export function jsonc(): JsoncParser {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package
  library ??= createRequire(import.meta.url)('jsonc-parser') as JsoncParser;
  return library;
}

export type SettingsFormat = 'json' | 'toml';

export const formatOf = (path: string): SettingsFormat => (path.endsWith('.toml') ? 'toml' : 'json');

/**
 * Parses a settings file of a client. JSON may have comments and trailing commas, as those of editors do; an empty file
 * is an empty object.
 *
 * @throws Error that says what is wrong, and where, without text of the file
 */
export function parseSettings(text: string, format: SettingsFormat): Readonly<Record<string, unknown>> {
  if (text.trim() === '') return {};
  const value = format === 'toml' ? tomlValue(text) : jsonValue(text);
  if (!isRecord(value)) throw new Error('expected an object');
  return value;
}

function jsonValue(text: string): unknown {
  const errors: import('jsonc-parser').ParseError[] = [];
  const value: unknown = jsonc().parse(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error === undefined) return value;
  const line = text.slice(0, error.offset).split('\n').length;
  throw new Error(`line ${line} is not valid JSON (${jsonc().printParseErrorCode(error.error)})`);
}

function tomlValue(text: string): unknown {
  try {
    return parseToml(text);
  } catch (error) {
    // Its message quotes the file.
    const { line } = membersOf(error);
    throw new Error(typeof line !== 'number' ? 'not valid TOML' : `line ${line} is not valid TOML`);
  }
}
