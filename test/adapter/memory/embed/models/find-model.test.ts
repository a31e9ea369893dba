import { expect, test } from 'vitest';
import { findModel } from '../../../../../src/adapter/memory/embed/models/find-model.ts';

const found = (paths: readonly string[], file?: string) => {
  const { name, files } = findModel('SOURCE', paths, file);
  return { name, files: Object.fromEntries(files) };
};

test('the files of a repository of Hugging Face are found in both of its folders', () => {
  const paths = [
    ...['README.md', 'config.json', 'tokenizer.json', 'tokenizer_config.json', 'modules.json', 'vocab.txt'],
    ...['1_Pooling/config.json', 'sentence_bert_config.json', 'config_sentence_transformers.json'],
    ...[
      'onnx/model.onnx',
      'onnx/model_O4.onnx',
      'onnx/model_qint8_avx512.onnx',
      'openvino/openvino_model.xml',
    ],
    ...['model.safetensors', 'pytorch_model.bin', 'onnx/model.onnx_data'],
  ];
  expect(found(paths)).toEqual({
    name: undefined,
    files: {
      'onnx/model.onnx': 'model.onnx',
      'onnx/model.onnx_data': 'model.onnx_data',
      'tokenizer.json': 'tokenizer.json',
      'config.json': 'config.json',
      'tokenizer_config.json': 'tokenizer_config.json',
      'modules.json': 'modules.json',
      '1_Pooling/config.json': '1_Pooling/config.json',
      'sentence_bert_config.json': 'sentence_bert_config.json',
      'config_sentence_transformers.json': 'config_sentence_transformers.json',
    },
  });
  expect(found(paths, 'model_qint8_avx512.onnx').files).toMatchObject({
    'onnx/model_qint8_avx512.onnx': 'model.onnx',
  });
});

test('the files of a package of Maven are found by the name of its model', () => {
  const paths = [
    'META-INF/MANIFEST.MF',
    'bge-small-en.onnx',
    'bge-small-en-tokenizer.json',
    'dev/x/Model.class',
  ];
  expect(found(paths)).toEqual({
    name: 'bge-small-en',
    files: { 'bge-small-en.onnx': 'model.onnx', 'bge-small-en-tokenizer.json': 'tokenizer.json' },
  });
});

test('files of the model are preferred to those of the folder above, and those of other folders are left out', () => {
  const paths = [
    'package/model/x.onnx',
    'package/model/config.json',
    'package/config.json',
    'package/tokenizer.json',
    'tokenizer.json',
  ];
  expect(found(paths).files).toEqual({
    'package/model/x.onnx': 'model.onnx',
    'package/tokenizer.json': 'tokenizer.json',
    'package/model/config.json': 'config.json',
  });
});

test.each([
  [
    ['a.onnx', 'b.onnx', 'tokenizer.json'],
    undefined,
    /has several models: a\.onnx, b\.onnx\. Choose one with --file/,
  ],
  [['a/model.onnx', 'b/model.onnx'], undefined, /has several models: a\/model\.onnx, b\/model\.onnx/],
  [
    ['a/model.onnx', 'b/model.onnx'],
    'model.onnx',
    /model\.onnx is there 2 times .* give --file the whole path/,
  ],
  [['a.onnx'], 'b.onnx', /has no model b\.onnx, but a\.onnx/],
  [['README.md'], undefined, /SOURCE: has no ONNX model \(\.onnx\)$/],
  [['model.safetensors'], undefined, /only model\.safetensors: `optimum-cli export onnx/],
  [
    ['model.onnx', 'vocab.txt'],
    undefined,
    /has no tokenizer\.json beside model\.onnx, only vocab\.txt, which is not enough/,
  ],
  [['onnx/model.onnx', 'sentencepiece.bpe.model'], undefined, /only sentencepiece\.bpe\.model/],
  [['m.onnx', 'a-tokenizer.json', 'b-tokenizer.json'], undefined, /has no tokenizer\.json beside m\.onnx/],
  [['__MACOSX/._model.onnx'], undefined, /has no ONNX model/],
])('a source with %j and --file %s is refused with what to do', (paths, file, message) => {
  expect(() => found(paths, file)).toThrow(message);
});
