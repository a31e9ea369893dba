import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import type { InferenceSession, Tensor } from 'onnxruntime-common';
import { AppError, messageOf } from '../../../../core/errors.ts';
import {
  elementsOf,
  entryIn,
  isRecord,
  membersOf,
  parseJson,
  stringIn,
  textIn,
} from '../../../../core/foreign.ts';
import { MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import { normalise } from '../embedder.ts';
import { verifyModel } from '../models/manifest.ts';
import { type OnnxFile, readOnnxFile } from './onnx-file.ts';
import { loadRuntime } from './runtime.ts';

/** Where sentence-transformers and the exporters of Hugging Face put the model. */
const MODEL_FILES = ['model.onnx', 'onnx/model.onnx'];
/** Tokens per text, if the model does not say: the position embeddings of BERT. */
const MAX_TOKENS = 512;

/** What a model may ask for, and the value for a token at a place in its text. */
const INPUTS: Readonly<Record<string, (token: number, place: number) => bigint>> = {
  input_ids: (token) => BigInt(token),
  attention_mask: () => 1n,
  token_type_ids: () => 0n,
  position_ids: (_, place) => BigInt(place),
};

type Pooling = 'mean' | 'cls' | 'max' | 'last';

/** What the files beside the model say about its use. */
interface ModelFiles {
  readonly tokenizer: Tokenizer;
  readonly maxTokens: number;
  readonly pooling: Pooling;
  /** Text in front of a document and of a query, which some models are trained with. */
  readonly prompts: { readonly document: string; readonly query: string };
}

/** A sentence-transformer model, loaded from an exported folder. */
export interface SentenceModel {
  /** Changes with the model's file, so that vectors of another one are never compared with its own. */
  readonly id: string;
  readonly dimensions: number;
  /** Unit vectors in the order of the texts. */
  embed(texts: readonly string[], kind: 'document' | 'query'): Promise<Float32Array[]>;
}

function refuse(folder: string, problem: string): never {
  throw new AppError('bad_request', { message: `embedder onnx:${folder}: ${problem}` });
}

/**
 * Loads a model in the calling thread, which it occupies while it computes.
 *
 * @param threads processor cores that one computation uses
 * @throws AppError `bad_request` that names the file or the package that is missing, or what is not supported
 */
export async function loadSentenceModel(folder: string, threads: number): Promise<SentenceModel> {
  const path = MODEL_FILES.map((name) => join(folder, name)).find((name) => existsSync(name));
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) refuse(folder, 'no such folder');
  if (path === undefined)
    refuse(
      folder,
      `has neither ${MODEL_FILES.join(' nor ')}: export the model with \`optimum-cli export onnx\``,
    );
  await verifyModel(folder);
  const runtime = loadRuntime();
  const files = readFiles(folder);
  const session = await runtime.InferenceSession.create(path, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    // Fatal errors only: others are reported here.
    logSeverityLevel: 4,
    // Threads that wait would otherwise occupy their cores.
    extra: { session: { intra_op: { allow_spinning: '0' } } },
    executionProviders: ['cpu'],
  }).catch((error: unknown) =>
    refuse(folder, `${basename(path)} cannot be loaded: ${loadingProblem(error)}`),
  );
  refuseInputs(folder, path, session.inputNames);
  const compute = (texts: readonly string[], prompt: string): Promise<Float32Array[]> =>
    run(
      runtime,
      session,
      files,
      texts.map((text) => prompt + text),
    );
  const [probe] = await compute(['length'], '').catch((error: unknown) => refuse(folder, messageOf(error)));
  const dimensions = probe?.length ?? 0;
  const hash = createHash('sha256');
  for (const part of [path, ...weightsOf(path)])
    for await (const bytes of createReadStream(part)) hash.update(bytes);
  hash.update(JSON.stringify([files.pooling, files.maxTokens, files.prompts]));
  return {
    id: `onnx/${basename(resolve(folder))}-${hash.digest('hex').slice(0, 12)}/${dimensions}`,
    dimensions,
    embed: (texts, kind) => compute(texts, files.prompts[kind]),
  };
}

function refuseInputs(folder: string, path: string, names: readonly string[]): void {
  const unknown = names.filter((name) => entryIn(INPUTS, name) === undefined);
  if (unknown.length > 0 || !names.includes('input_ids'))
    refuse(
      folder,
      `${basename(path)} wants ${names.slice(0, 20).join(', ')}: a sentence model takes input_ids, and at most ${Object.keys(INPUTS).slice(1).join(', ')}`,
    );
}

/**
 * Checks the files of a model as far as that is possible without the runtime: the structure of the ONNX file, its inputs and weights, the
 * tokenizer, and what the settings ask for.
 *
 * @param texts of which the tokenizer must make something
 * @throws AppError `bad_request` as `loadSentenceModel`
 */
export function checkSentenceModel(folder: string, texts: readonly string[]): void {
  const path = MODEL_FILES.map((name) => join(folder, name)).find((name) => existsSync(name));
  if (path === undefined) refuse(folder, `has neither ${MODEL_FILES.join(' nor ')}`);
  const { tokenizer } = readFiles(folder);
  let file: OnnxFile;
  try {
    file = readOnnxFile(path);
  } catch (error) {
    refuse(folder, `${basename(path)} ${messageOf(error)}`);
  }
  refuseInputs(folder, path, file.inputs);
  const missing = file.weights.find((name) => !existsSync(join(dirname(path), name)));
  if (missing !== undefined)
    refuse(folder, `${basename(path)} has its weights in ${missing}, which has to be beside it`);
  const isEmpty = texts.some((text) => tokenizer.encode(text).ids.length === 0);
  if (isEmpty) refuse(folder, 'tokenizer.json makes nothing of a sentence');
}

/** Files in which large models have their weights, by the names that exporters give them. */
function weightsOf(path: string): readonly string[] {
  const name = basename(path);
  return readdirSync(dirname(path))
    .filter((file) => file.startsWith(`${name}_data`) || file.startsWith(`${name}.data`))
    .sort()
    .map((file) => join(dirname(path), file));
}

/** What the runtime says, with what it usually means. */
function loadingProblem(error: unknown): string {
  const said = messageOf(error);
  if (/protobuf|INVALID_PROTOBUF/i.test(said)) return `${said}. It is damaged, or was not copied completely`;
  return /external data|file_size|\.onnx[_.]data/i.test(said)
    ? `${said}. Its weights are in a file of their own, which has to be beside it`
    : said;
}

function readFiles(folder: string): ModelFiles {
  const read = (name: string): unknown => {
    const file = join(folder, name);
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (!stat.isFile() || stat.size > MEMORY_STORE_LIMITS.modelFileBytes)
      refuse(
        folder,
        `${name} is not a file of at most ${MEMORY_STORE_LIMITS.modelFileBytes / 1024 ** 2} MiB`,
      );
    try {
      return parseJson(readFileSync(file, 'utf8'));
    } catch (error) {
      refuse(folder, `${name} is not valid JSON: ${messageOf(error)}`);
    }
  };
  const tokenizer = read('tokenizer.json');
  if (tokenizer === undefined) refuse(folder, 'has no tokenizer.json: copy it from the model');
  if (!isRecord(tokenizer)) refuse(folder, 'tokenizer.json is not a JSON object: copy it from the model');
  const settings = membersOf(read('tokenizer_config.json'));
  const modules = elementsOf(read('modules.json')).map(membersOf);
  const kinds = modules.map(({ type }) => textIn(type).slice(textIn(type).lastIndexOf('.') + 1));
  const unknown = kinds.find((kind) => !['Transformer', 'Pooling', 'Normalize'].includes(kind));
  if (unknown !== undefined)
    refuse(
      folder,
      `modules.json has a module ${unknown}: only Transformer, Pooling and Normalize are supported`,
    );
  const path = stringIn(modules[kinds.indexOf('Pooling')]?.['path']) ?? '1_Pooling';
  const pooling = membersOf(read(join(path, 'config.json')));
  const limits = [
    membersOf(read('sentence_bert_config.json'))['max_seq_length'],
    settings['model_max_length'],
    membersOf(read('config.json'))['max_position_embeddings'],
  ].filter((value): value is number => typeof value === 'number' && Number.isInteger(value) && value > 0);
  const prompts = membersOf(membersOf(read('config_sentence_transformers.json'))['prompts']);
  return {
    tokenizer: tokenizerFrom(folder, tokenizer, settings),
    maxTokens: Math.min(MAX_TOKENS, ...limits),
    pooling: poolingOf(folder, pooling),
    prompts: {
      query: promptIn(prompts['query']),
      document: promptIn(prompts['document'] ?? prompts['passage']),
    },
  };
}

const promptIn = (value: unknown): string => textIn(value).slice(0, MEMORY_STORE_LIMITS.embeddingInputLength);

function tokenizerFrom(folder: string, json: Readonly<Record<string, unknown>>, settings: object): Tokenizer {
  try {
    // Texts are cut and filled up here, for each batch.
    return new Tokenizer({ ...json, truncation: null, padding: null }, settings);
  } catch (error) {
    refuse(folder, `tokenizer.json is not supported: ${messageOf(error)}`);
  }
}

function poolingOf(folder: string, config: Readonly<Record<string, unknown>>): Pooling {
  const names = new Map<string, Pooling>([
    ['mean_tokens', 'mean'],
    ['cls_token', 'cls'],
    ['max_tokens', 'max'],
    ['lasttoken', 'last'],
  ]);
  const set = Object.entries(config).filter(
    ([key, value]) => key.startsWith('pooling_mode_') && value === true,
  );
  const known = set.map(([key]) => names.get(key.slice('pooling_mode_'.length)));
  if (set.length === 0) return 'mean';
  if (known.length > 1 || known[0] === undefined)
    refuse(
      folder,
      `the pooling ${set.map(([key]) => key).join(' + ')} is not supported: only one of mean, cls, max, last`,
    );
  return known[0];
}

async function run(
  { Tensor: TensorClass }: typeof import('onnxruntime-common'),
  session: InferenceSession,
  { tokenizer, maxTokens, pooling }: ModelFiles,
  texts: readonly string[],
): Promise<Float32Array[]> {
  const encoded = texts.map((text) => cut(tokenizer.encode(text).ids, maxTokens));
  const width = Math.max(...encoded.map(({ length }) => length));
  const cells = encoded.length * width;
  const feeds: Record<string, Tensor> = {};
  for (const name of session.inputNames) {
    const value = entryIn(INPUTS, name);
    const data = new BigInt64Array(cells);
    for (const [row, tokens] of encoded.entries())
      for (const [column, token] of tokens.entries())
        data[row * width + column] = value?.(token, column) ?? 0n;
    feeds[name] = new TensorClass('int64', data, [encoded.length, width]);
  }
  const outputs = await session.run(feeds);
  const whole = outputs['sentence_embedding'];
  const output = whole ?? outputs['last_hidden_state'] ?? outputs[session.outputNames[0] ?? ''];
  if (output === undefined) throw new Error('the model has no output');
  const { data, dims } = output;
  if (!(data instanceof Float32Array)) throw new Error('the output of the model is not of the type float32');
  const size = dims.at(-1) ?? 0;
  if (size < 1 || size > MEMORY_STORE_LIMITS.dimensions)
    throw new Error(
      `the output of the model has ${size} dimensions, expected 1 to ${MEMORY_STORE_LIMITS.dimensions}`,
    );
  const perRow = dims.length === 2 ? 1 : width;
  if (dims.length < 2 || dims.length > 3 || data.length < encoded.length * perRow * size)
    throw new Error(
      `the output of the model has the shape ${dims.join(' × ')}, which is not that of its texts`,
    );
  return encoded.map(({ length }, row) => {
    if (dims.length === 2) return normalise(data.slice(row * size, (row + 1) * size));
    const tokens = data.subarray(row * width * size, (row * width + length) * size);
    return normalise(pooled(tokens, size, pooling));
  });
}

/** Keeps the special token at the end. */
function cut(ids: readonly number[], most: number): readonly number[] {
  return ids.length <= most ? ids : [...ids.slice(0, most - 1), ...ids.slice(-1)];
}

/** One vector from those of the tokens. The length of a mean has no meaning, so it is the sum. */
function pooled(tokens: Float32Array, size: number, pooling: Pooling): Float32Array {
  if (pooling === 'cls') return tokens.slice(0, size);
  if (pooling === 'last') return tokens.slice(tokens.length - size);
  const vector = new Float32Array(size).fill(pooling === 'max' ? Number.NEGATIVE_INFINITY : 0);
  for (const [index, value] of tokens.entries()) {
    const place = index % size;
    const before = vector[place] ?? 0;
    vector[place] = pooling === 'max' ? Math.max(before, value) : before + value;
  }
  return vector;
}
