import { randomUUID } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { parseJson } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import { readNamedFile } from '../../core/named-file.ts';
import { counted } from '../../core/render/counted.ts';
import { ImportError, importModelsDev } from '../../server/llm/cost/models-dev.ts';
import type { Run } from '../context.ts';

interface Options {
  readonly file: string;
  readonly providers?: string;
  readonly legacy?: boolean;
  readonly pretty?: boolean;
  readonly out?: string;
}

export const run: Run<Options> = async (options, { stdout, stderr, cwd }) => {
  const { file, providers, legacy = false, pretty = false, out } = options;
  const names = providers
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const { catalog, warnings } = imported(readList(file, cwd), file, {
    ...(names === undefined ? {} : { providers: names }),
    includeDeprecated: legacy,
  });
  const text = `${JSON.stringify(catalog, undefined, pretty ? 2 : undefined)}\n`;
  if (out === undefined) stdout.write(text);
  else replaceFile(resolve(cwd, out), text);
  const lines = warnings.map((warning) => `warning: ${escapeControls(warning)}\n`);
  const count = Object.keys(catalog.providers).length;
  stderr.write(`${lines.join('')}imported ${counted(count, 'provider')}\n`);
  return EXIT_CODES.ok.code;
};

function imported(
  list: unknown,
  file: string,
  options: Parameters<typeof importModelsDev>[1],
): ReturnType<typeof importModelsDev> {
  try {
    return importModelsDev(list, options);
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    throw new CommandError(error.isUnreadable ? 'usage' : 'not_ok', `${file}: ${error.message}`, error.hint);
  }
}

function readList(file: string, cwd: string): unknown {
  const text = readNamedFile(file, { cwd, maxBytes: LIMITS.modelListBytes });
  try {
    return parseJson(text);
  } catch (error) {
    throw new CommandError('usage', `${file} is not JSON: ${messageOf(error)}`);
  }
}

/**
 * Replaces the file atomically: a gateway that watches it never reads half of it, and the old file is kept if writing
 * fails.
 */
function replaceFile(path: string, text: string): void {
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new CommandError('not_ok', `cannot write ${path}: ${messageOf(error)}`);
  }
}
