import { addedModels, modelsFolder } from '../../adapter/memory/embed/models/model-store.ts';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import { displayWidth, escapeControls } from '../../core/render/width.ts';
import type { Context, Run } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { asModelError } from '../memory/model-errors.ts';
import { sizeText } from '../memory/model-size.ts';
import { table } from '../proxy/print.ts';

const HEADER = ['NAME', 'DIMENSIONS', 'SIZE', 'ADDED', 'SOURCE'];

/** Lists the models that were added. */
export const run: Run<object> = async (_options, context) => {
  const models = modelsOf(context);
  if (models.length === 0) {
    context.stdout.write(asCalled('no models: agctl memory model add adds one\n', context));
    return EXIT_CODES.ok.code;
  }
  const rows = models.map(({ name, manifest }) => {
    if (manifest === undefined) return [name, 'damaged: remove it and add it again', '', '', ''];
    const bytes = Object.values(manifest.files).reduce((sum, file) => sum + file.bytes, 0);
    const { dimensions, addedAt, source } = manifest;
    return [
      name,
      dimensions === undefined ? 'not loaded' : `${dimensions}`,
      sizeText(bytes),
      addedAt.slice(0, 10),
      source,
    ];
  });
  context.stdout.write(
    table(
      [HEADER, ...rows].map((row) => row.map(escapeControls)),
      displayWidth,
    ),
  );
  return EXIT_CODES.ok.code;
};

function modelsOf({ env }: Context): ReturnType<typeof addedModels> {
  try {
    return addedModels(modelsFolder(env));
  } catch (error) {
    throw asModelError(error);
  }
}
