import { refuseSource } from './model-source.ts';

/** What is read beside a model (`onnx/sentence-model.ts`), besides the tokenizer. */
const BESIDE =
  /^(?:config|tokenizer_config|modules|sentence_bert_config|config_sentence_transformers)\.json$/;
const POOLING = /^\d+_Pooling\/config\.json$/;
/** Files of tokenizers in other formats, which say that the folder is a model's. */
const OTHER_TOKENIZERS =
  /^(?:vocab\.txt|vocab\.json|merges\.txt|spiece\.model|.*\.bpe\.model|tokenizer\.model)$/;
/** Files that a list in a message names. */
const SHOWN = 8;

export interface FoundModel {
  /** Of the model, such as `all-minilm-l6-v2`; undefined if its file is only called `model`. */
  readonly name: string | undefined;
  /** Path in the source, and in the folder of the added model. */
  readonly files: ReadonlyMap<string, string>;
}

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/**
 * The files of the one sentence model among `paths`: `NAME.onnx`, weights in files of their own, and from the same folder or the
 * one above `tokenizer.json` or `NAME-tokenizer.json` and what describes the model.
 *
 * @param file the ONNX file to use, as a path or its end, if there are several
 * @throws AppError `bad_request` that names what is missing, or the models there are
 */
export function findModel(source: string, paths: readonly string[], file: string | undefined): FoundModel {
  const model = modelFile(source, paths, file);
  const folder = folderOf(model);
  const above = folderOf(folder.slice(0, -1));
  const folders = folder === '' ? [''] : [folder, above];
  const files = new Map([[model, 'model.onnx']]);
  for (const path of paths)
    if (isWeights(path, model) && folderOf(path) === folder) files.set(path, nameOf(path));
  files.set(tokenizerOf(source, paths, folders, model), 'tokenizer.json');
  const taken = new Set<string>();
  for (const one of folders)
    for (const path of paths) {
      const inside = path.slice(one.length);
      if (!path.startsWith(one) || taken.has(inside) || !(BESIDE.test(inside) || POOLING.test(inside)))
        continue;
      taken.add(inside);
      files.set(path, inside);
    }
  const stem = nameOf(model).slice(0, -'.onnx'.length);
  return { name: /^(?:encoder_)?model(?:[._-].*)?$/i.test(stem) ? undefined : stem, files };
}

/** `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data`: the model names them, so they keep their names. */
const isWeights = (path: string, model: string): boolean =>
  nameOf(path).startsWith(nameOf(model)) &&
  /^(?:_data|\.data)/.test(nameOf(path).slice(nameOf(model).length));

function modelFile(source: string, paths: readonly string[], file: string | undefined): string {
  const models = paths.filter((path) => path.endsWith('.onnx') && !nameOf(path).startsWith('._'));
  const shown = `${models.slice(0, SHOWN).join(', ')}${models.length > SHOWN ? ` and ${models.length - SHOWN} more` : ''}`;
  if (file !== undefined) {
    const named = models.filter((path) => path === file || path.endsWith(`/${file}`));
    const [one] = named;
    if (named.length === 1 && one !== undefined) return one;
    refuseSource(
      source,
      named.length > 1
        ? `${file} is there ${named.length} times (${named.join(', ')}): give --file the whole path`
        : models.length === 0
          ? 'has no ONNX model (.onnx)'
          : `has no model ${file}, but ${shown}`,
    );
  }
  if (models.length === 0) refuseSource(source, `has no ONNX model (.onnx)${hint(paths)}`);
  // Exporters put variants beside `model.onnx`: quantised, optimised, of half precision.
  const plain = models.filter((path) => nameOf(path) === 'model.onnx');
  const [only] = models.length === 1 ? models : plain;
  const isVariant = (path: string): boolean => folderOf(path) === folderOf(only ?? '');
  if (only === undefined || (models.length > 1 && (plain.length > 1 || !models.every(isVariant))))
    refuseSource(source, `has several models: ${shown}. Choose one with --file`);
  return only;
}

function hint(paths: readonly string[]): string {
  const weights = paths.find((path) => /(?:\.safetensors|pytorch_model\.bin|\.gguf|\.h5)$/.test(path));
  return weights === undefined
    ? ''
    : `, only ${weights}: \`optimum-cli export onnx --model NAME FOLDER\` makes a folder with one`;
}

function tokenizerOf(
  source: string,
  paths: readonly string[],
  folders: readonly string[],
  model: string,
): string {
  for (const folder of folders) {
    const here = paths.filter((path) => folderOf(path) === folder && nameOf(path).endsWith('tokenizer.json'));
    const exact = here.find((path) => nameOf(path) === 'tokenizer.json');
    if (exact !== undefined) return exact;
    const stem = nameOf(model).slice(0, -'.onnx'.length);
    const ofModel = here.filter((path) => nameOf(path).startsWith(stem));
    const [one] = ofModel.length > 0 ? ofModel : here;
    if (one !== undefined && (ofModel.length === 1 || here.length === 1)) return one;
  }
  const other = paths.find((path) => folders.includes(folderOf(path)) && OTHER_TOKENIZERS.test(nameOf(path)));
  refuseSource(
    source,
    `has no tokenizer.json beside ${model}${other === undefined ? '' : `, only ${other}, which is not enough`}: put that of the model there`,
  );
}
