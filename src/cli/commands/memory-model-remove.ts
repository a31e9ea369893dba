import { modelsFolder, removeModel } from '../../adapter/memory/embed/models/model-store.ts';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import type { Run } from '../context.ts';
import { asModelError } from '../memory/model-errors.ts';

interface Options {
  readonly operands: readonly string[];
}

/** Deletes an added model. A backend that has loaded it keeps it until it ends. */
export const run: Run<Options> = async ({ operands: [name = ''] }, context) => {
  try {
    removeModel(modelsFolder(context.env), name);
  } catch (error) {
    throw asModelError(error);
  }
  context.stdout.write(`removed: ${name}\n`);
  return EXIT_CODES.ok.code;
};
