import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AppError, messageOf } from '../../../../core/errors.ts';
import { errorCode } from '../../../../core/foreign.ts';
import { dataHome } from '../../data-home.ts';
import { MANIFEST, type ModelManifest, manifestIn } from './manifest.ts';

// Models that `agctl memory model add` has added: a folder each, in one folder for all stores of a user.

/** The folder of added models: `MEMORY_MODELS_DIR`, by default beside the store. */
export function modelsFolder(env: Readonly<Record<string, string | undefined>>): string {
  return resolve(env['MEMORY_MODELS_DIR'] || join(dataHome(env), 'models'));
}

export const MODEL_NAME_FORM =
  '1 to 64 lower-case letters, digits, `.`, `_` and `-`, beginning with a letter or digit';

/** Whether a text can name an added model. */
export const isModelName = (text: string): boolean =>
  /^[a-z0-9][a-z0-9._-]{0,63}$/.test(text) && text !== 'builtin';

/**
 * Added models by name; those whose manifest cannot be read have none.
 *
 * @throws AppError `bad_request` if the folder cannot be read
 */
export function addedModels(
  models: string,
): readonly { name: string; manifest: ModelManifest | undefined }[] {
  return namesIn(models)
    .filter((name) => isModelName(name) && existsSync(join(models, name, MANIFEST)))
    .sort()
    .map((name) => ({ name, manifest: readable(join(models, name)) }));
}

function namesIn(models: string): readonly string[] {
  try {
    return readdirSync(models);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw new AppError('bad_request', {
      message: `the folder of models cannot be read: ${messageOf(error)}`,
    });
  }
}

function readable(folder: string): ModelManifest | undefined {
  try {
    return manifestIn(folder);
  } catch {
    return undefined;
  }
}

/**
 * The folder of an added model.
 *
 * @throws AppError `bad_request` with the names that there are
 */
export function addedModel(models: string, name: string): string {
  const names = addedModels(models).map(({ name: one }) => one);
  if (names.includes(name)) return join(models, name);
  const there = names.length === 0 ? 'none has been added' : `there are ${names.join(', ')}`;
  throw new AppError('bad_request', {
    message: `no model ${JSON.stringify(name.slice(0, 100))} in ${models} (${there}): agctl memory model add adds one`,
  });
}

/** Deletes an added model. @throws AppError `bad_request` if there is none of this name */
export function removeModel(models: string, name: string): void {
  rmSync(addedModel(models, name), { recursive: true });
}
