import { isDeepStrictEqual } from 'node:util';
import { Lexer, parseDocument } from 'yaml';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { replaceFile } from '../../core/replace-file.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { auditWrite } from '../audit/own-change.ts';
import { configFileOf } from '../config-file.ts';
import type { Run } from '../context.ts';
import { dataOutput } from '../safe-output.ts';

interface Options {
  readonly file?: string;
  readonly operands?: readonly string[];
  readonly check?: boolean;
}

export const run: Run<Options> = async (options, context) => {
  const named = [...(options.file === undefined ? [] : [options.file]), ...(options.operands ?? [])];
  const files = named.length > 0 ? named : [configFileOf(undefined, context)];
  let different = 0;
  for (const file of files) {
    const text = readConfigFile(file);
    const formatted = formatConfig(text, file);
    if (file === '-' && !options.check) dataOutput(context.stdout).write(formatted);
    if (formatted === text) continue;
    different += 1;
    if (options.check) context.stdout.write(`${file}\n`);
    else if (file !== '-') {
      write(file, formatted, text);
      await auditWrite({ command: 'agctl config fmt', file, before: text, after: formatted }, context);
      context.stderr.write(`${file}: formatted\n`);
    }
  }
  return options.check && different > 0 ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
};

/**
 * The text of a configuration in one form: two spaces of indentation, one space around what separates. Comments, quotes,
 * anchors and the order of keys are kept.
 *
 * @throws CommandError if the text is not valid YAML, or if it could not be formatted without changing its meaning
 */
export function formatConfig(text: string, file: string): string {
  const { diagnostics } = loadConfigText(text, file, {});
  const broken = diagnostics.find(
    ({ code }) => code === 'AGW0001' || code === 'AGW0002' || code === 'AGW0003',
  );
  if (broken !== undefined) {
    const { line, column } = broken.range.start;
    throw new CommandError(
      'not_ok',
      `${file}:${line}:${column}: ${broken.message}`,
      'only valid YAML can be formatted: agctl config validate',
    );
  }
  const formatted = print(print(text));
  // A comment that the library moved into a text, or lost, must not be written.
  if (
    !isDeepStrictEqual(plainValue(formatted), plainValue(text)) ||
    !isDeepStrictEqual(commentsOf(formatted), commentsOf(text))
  )
    throw new CommandError(
      'not_ok',
      `${file} cannot be formatted without changing it`,
      'move unusual comments to lines of their own',
    );
  return text.includes('\r\n') ? formatted.replaceAll('\n', '\r\n') : formatted;
}

/** Large numbers keep their digits. */
const OPTIONS = { intAsBigInt: true, uniqueKeys: false } as const;

/** With texts and null alone, numbers keep their notation: `00` is not `0`, as in a key of digits. */
const print = (text: string): string =>
  parseDocument(text.replaceAll('\r\n', '\n'), {
    uniqueKeys: false,
    schema: 'failsafe',
    customTags: ['null'],
  }).toString({
    ...{ lineWidth: 0, indent: 2, indentSeq: true },
  });

const plainValue = (text: string): unknown =>
  parseDocument(text.replaceAll('\r\n', '\n'), OPTIONS).toJS({ maxAliasCount: -1 }) as unknown;

function commentsOf(text: string): readonly string[] {
  return [...new Lexer().lex(text.replaceAll('\r\n', '\n'))]
    .filter((token) => token.startsWith('#'))
    .map((comment) => comment.trimEnd())
    .sort();
}

function write(file: string, text: string, before: string): void {
  try {
    if (!replaceFile(file, Buffer.from(text), () => readConfigFile(file) === before))
      throw new Error('another program has just changed it: try again');
  } catch (error) {
    throw new CommandError('not_ok', `cannot write ${file}: ${messageOf(error)}`);
  }
}
