import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

// An embedding model of one operation, written as an ONNX file by hand (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto,
// field numbers from there): each word has a vector, and `last_hidden_state` lists them.

const LENGTH_DELIMITED = 2;
const FLOAT = 1;
const INT64 = 7;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
}
const number = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field: number, ...parts: readonly (Buffer | string)[]): Buffer => {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  return Buffer.concat([varint((field << 3) | LENGTH_DELIMITED), varint(content.length), content]);
};

/** A tensor among the inputs and outputs; the sizes of its dimensions are not fixed. */
function value(field: number, name: string, type: number, dimensions: readonly string[]): Buffer {
  const shape = dimensions.map((dimension) => bytes(1, bytes(2, dimension)));
  return bytes(field, bytes(1, name), bytes(2, bytes(1, number(1, type), bytes(2, ...shape))));
}

function model(rows: readonly (readonly number[])[]): Buffer {
  const weights = Buffer.from(Float32Array.from(rows.flat()).buffer);
  const graph = [
    bytes(1, bytes(1, 'words'), bytes(1, 'input_ids'), bytes(2, 'last_hidden_state'), bytes(4, 'Gather')),
    bytes(2, 'tiny'),
    bytes(
      5,
      number(1, rows.length),
      number(1, rows[0]?.length ?? 0),
      number(2, FLOAT),
      bytes(8, 'words'),
      bytes(9, weights),
    ),
    value(11, 'input_ids', INT64, ['texts', 'tokens']),
    value(11, 'attention_mask', INT64, ['texts', 'tokens']),
    value(12, 'last_hidden_state', FLOAT, ['texts', 'tokens', 'size']),
  ];
  return Buffer.concat([number(1, 8), bytes(7, ...graph), bytes(8, number(2, 13))]);
}

/**
 * Writes the folder of a sentence-transformer whose texts are the sum of its words' vectors.
 *
 * @param words vectors of the same length; other words have the vector of `[UNK]`
 * @param files additional or other files, by path in the folder; undefined leaves one out
 */
export async function tinyModel(
  folder: string,
  words: Readonly<Record<string, readonly number[]>>,
  files: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const size = Object.values(words)[0]?.length ?? 0;
  const all = { '[UNK]': Array(size).fill(0), ...words };
  const tokenizer = {
    version: '1.0',
    added_tokens: [],
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: { type: 'Whitespace' },
    post_processor: null,
    decoder: null,
    model: {
      type: 'WordPiece',
      vocab: Object.fromEntries(Object.keys(all).map((word, index) => [word, index])),
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
    },
  };
  const wanted = { 'onnx/model.onnx': model(Object.values(all)), 'tokenizer.json': tokenizer, ...files };
  await mkdir(folder, { recursive: true });
  for (const [path, content] of Object.entries(wanted)) {
    if (content === undefined) continue;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    const isText = typeof content === 'string' || Buffer.isBuffer(content);
    await writeFile(join(folder, path), isText ? content : JSON.stringify(content));
  }
  return folder;
}
