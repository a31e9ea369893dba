import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { openSource } from '../../../../../src/adapter/memory/embed/models/open-source.ts';
import { type ArchiveEntry, tarOf, zipOf } from '../../../../kit/archives.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';

const LONG = `${'deep/'.repeat(60)}${'a'.repeat(120)}.json`;
const FILES: Readonly<Record<string, string>> = {
  'onnx/model.onnx': 'x'.repeat(100_000),
  'tokenizer.json': '{"größe":1}',
  'empty.json': '',
  [LONG]: 'long',
};

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

/** All files of a source, read from copies. */
async function contents(path: string, out: string): Promise<Record<string, string>> {
  const { source } = await openSource(path);
  const paths = await source.list();
  const targets = new Map(paths.map((one, index) => [one, join(out, `${index}`)]));
  const stored = await source.copy(targets);
  return Object.fromEntries(
    [...targets].map(([one, target]) => {
      const text = readFileSync(target, 'utf8');
      expect(stored.get(one)?.bytes).toBe(Buffer.byteLength(text));
      return [one, text];
    }),
  );
}

const runs = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0;
const hasTar = runs('tar', '--version');
const isGnuTar = hasTar && spawnSync('tar', ['--version']).stdout.includes('GNU');
const hasPython = runs('python3', '--version');

test('a folder is read with its subfolders, without those of Git and of other packages', async () => {
  await using folder = await temporaryFolder();
  write(join(folder.path, 'in'), { ...FILES, '.git/config': 'no', 'node_modules/other/model.onnx': 'no' });
  expect(await contents(join(folder.path, 'in'), join(folder.path, 'out'))).toEqual(FILES);
});

test.skipIf(!hasTar).each([
  ['-c'],
  ['-cz'],
  ...(isGnuTar
    ? [
        ['-cz', '--format=pax'],
        ['-cz', '--format=gnu'],
      ]
    : []),
])('an archive that `tar %s` makes is read as it was packed', async (...options) => {
  await using folder = await temporaryFolder();
  write(join(folder.path, 'in'), FILES);
  const archive = join(folder.path, 'model.tgz');
  const [first = '', ...rest] = options;
  expect(runs('tar', `${first}f`, archive, ...rest, '-C', join(folder.path, 'in'), '.')).toBe(true);
  expect(await contents(archive, join(folder.path, 'out'))).toEqual(FILES);
});

test.skipIf(!hasPython).each([
  ['ZIP', ''],
  ['ZIP64', 'zipfile.ZIP64_LIMIT=10\n'],
])('an archive that Python makes in %s format is read as it was packed', async (_format, limit) => {
  await using folder = await temporaryFolder();
  write(join(folder.path, 'in'), FILES);
  const archive = join(folder.path, 'model.jar');
  const script =
    `import os,sys,zipfile\n${limit}z=zipfile.ZipFile(sys.argv[1],"w",zipfile.ZIP_DEFLATED)\nos.chdir(sys.argv[2])\n` +
    'for d,_,fs in os.walk("."):\n for f in fs: z.write(os.path.join(d,f)[2:])\nz.writestr(zipfile.ZipInfo("stored.json"),"s")\nz.close()';
  expect(runs('python3', '-c', script, archive, join(folder.path, 'in'))).toBe(true);
  expect(readFileSync(archive).includes('PK\x06\x07')).toBe(limit !== '');
  expect(await contents(archive, join(folder.path, 'out'))).toEqual({ ...FILES, 'stored.json': 's' });
});

test('an archive of Windows with backslashes in its paths is read as if they were slashes', async () => {
  await using folder = await temporaryFolder();
  const archive = join(folder.path, 'model.zip');
  writeFileSync(archive, zipOf([{ path: 'onnx\\model.onnx', content: 'x' }]));
  expect(await contents(archive, join(folder.path, 'out'))).toEqual({ 'onnx/model.onnx': 'x' });
});

const SAFE: ArchiveEntry = { path: 'tokenizer.json', content: '{}' };

test.each([
  ['../../.bashrc', /contains "\.\.\/\.\.\/\.bashrc", which leads out of the archive/],
  ['/etc/cron.d/agctl', /contains "\/etc\/cron\.d\/agctl", which leads out/],
  ['a\\..\\..\\b', /which leads out/],
  ['C:/autoexec.bat', /which leads out/],
])('an archive with the path %s is refused before anything is written', async (path, message) => {
  await using folder = await temporaryFolder();
  for (const [name, bytes] of [
    ['a.tgz', tarOf([SAFE, { path, content: 'x' }])],
    ['a.zip', zipOf([SAFE, { path, content: 'x' }])],
  ] as const) {
    writeFileSync(join(folder.path, name), bytes);
    const { source } = await openSource(join(folder.path, name));
    await expect(source.list()).rejects.toThrow(message);
    await expect(source.copy(new Map([['tokenizer.json', join(folder.path, 'out')]]))).rejects.toThrow(
      message,
    );
  }
});

test('links, devices and sparse files in archives are no files', async () => {
  await using folder = await temporaryFolder();
  const link = { path: 'model.onnx', link: '/etc/passwd' };
  for (const [name, bytes] of [
    [
      'a.tgz',
      tarOf([SAFE, link, { ...link, type: '1' }, { path: 'disk', type: '4' }, { path: 's', type: 'S' }]),
    ],
    ['a.zip', zipOf([SAFE, link])],
  ] as const) {
    writeFileSync(join(folder.path, name), bytes);
    const { source } = await openSource(join(folder.path, name));
    expect(await source.list()).toEqual(['tokenizer.json']);
  }
});

test('an archive that has a file twice, and one with an encrypted file, is refused', async () => {
  await using folder = await temporaryFolder();
  for (const [name, bytes, message] of [
    ['a.tgz', tarOf([SAFE, SAFE]), /contains tokenizer\.json twice/],
    ['a.zip', zipOf([SAFE, SAFE]), /contains tokenizer\.json twice/],
    ['b.zip', zipOf([{ ...SAFE, isEncrypted: true }]), /tokenizer\.json cannot be unpacked: it is encrypted/],
  ] as const) {
    writeFileSync(join(folder.path, name), bytes);
    const { source } = await openSource(join(folder.path, name));
    await expect(source.copy(new Map([['tokenizer.json', join(folder.path, 'out', name)]]))).rejects.toThrow(
      message,
    );
  }
});

test('a symbolic link out of a folder is refused, and one to the blobs of a Hugging Face cache is followed', async () => {
  await using folder = await temporaryFolder();
  const cached = join(folder.path, 'hub/models--org--name');
  write(cached, { 'blobs/abc': 'the model', 'snapshots/1/README.md': '' });
  const snapshot = join(cached, 'snapshots/1');
  symlinkSync('../../blobs/abc', join(snapshot, 'model.onnx'));
  const cache = await openSource(snapshot);
  await cache.source.copy(new Map([['model.onnx', join(folder.path, 'out')]]));
  expect(readFileSync(join(folder.path, 'out'), 'utf8')).toBe('the model');
  const own = join(folder.path, 'own');
  write(own, { 'inside.txt': '' });
  symlinkSync(join(cached, 'blobs/abc'), join(own, 'model.onnx'));
  const { source } = await openSource(own);
  await expect(source.copy(new Map([['model.onnx', join(folder.path, 'other')]]))).rejects.toThrow(
    /model\.onnx is a symbolic link to a file outside the folder/,
  );
});

test('an archive that is cut off or damaged is refused at every place', async () => {
  await using folder = await temporaryFolder();
  const entries = [SAFE, { path: 'model.onnx', content: Buffer.from([...Array(9000).keys()]) }];
  const targets = (name: string) => new Map(entries.map(({ path }) => [path, join(folder.path, name, path)]));
  const plain = gunzipSync(tarOf(entries));
  const cases: [string, Buffer][] = [0.1, 0.5, 0.9].flatMap((part) => [
    ['tgz', tarOf(entries).subarray(0, Math.floor(tarOf(entries).length * part))],
    ['tar', plain.subarray(0, Math.floor((plain.length - 1024) * part))],
    ['zip', zipOf(entries).subarray(0, Math.floor(zipOf(entries).length * part))],
  ]);
  cases.push(['zip', zipOf([SAFE, { path: 'model.onnx', content: 'abc', crc: 1 }])]);
  const flipped = Buffer.from(plain);
  flipped[0] = (flipped[0] ?? 0) ^ 1;
  cases.push(['tar', flipped]);
  // Between two files, and before the zeros at the end.
  cases.push(['tar', plain.subarray(0, 1024)], ['tar', plain.subarray(0, plain.length - 1024)]);
  cases.push([
    'tar',
    gunzipSync(tarOf([{ path: 'x', type: 'L', content: 'a'.repeat(1_048_577) }, ...entries])),
  ]);
  for (const [index, [kind, bytes]] of cases.entries()) {
    const path = join(folder.path, `${index}.${kind}`);
    writeFileSync(path, bytes);
    await expect(
      openSource(path).then(({ source }) => source.copy(targets(`${index}`))),
      `${index} ${kind}`,
    ).rejects.toMatchObject({ code: 'bad_request' });
  }
});

test('a ZIP64 archive whose positions are beyond all files is refused', async () => {
  await using folder = await temporaryFolder();
  const zip = zipOf([SAFE]);
  const beyond = Buffer.alloc(8, 0xff);
  const end = Buffer.concat([Buffer.from('PK\x06\x06'), Buffer.alloc(44), beyond]);
  end.writeUInt8(1, 32);
  const at = Buffer.alloc(8);
  at.writeUInt32LE(zip.length - 22);
  for (const [index, parts] of [
    [Buffer.from('PK\x06\x07'), Buffer.alloc(4), beyond, Buffer.alloc(4)],
    [end, Buffer.from('PK\x06\x07'), Buffer.alloc(4), at, Buffer.alloc(4)],
  ].entries()) {
    const path = join(folder.path, `${index}.zip`);
    writeFileSync(path, Buffer.concat([zip.subarray(0, -22), ...parts, zip.subarray(-22)]));
    const { source } = await openSource(path);
    await expect(source.list()).rejects.toThrow(/is not a ZIP archive that can be read: it ends too early/);
  }
});

test('bytes behind the end of a tar archive are skipped', async () => {
  await using folder = await temporaryFolder();
  const archive = join(folder.path, 'model.tar');
  writeFileSync(archive, gunzipSync(tarOf([SAFE])));
  truncateSync(archive, 100 * 1024 * 1024);
  expect(await contents(archive, join(folder.path, 'out'))).toEqual({ 'tokenizer.json': '{}' });
});

test('an archive that unpacks to too much, or has too many files, is refused before it is unpacked', async () => {
  await using folder = await temporaryFolder();
  const GIB = 1024 ** 3;
  const large = [
    { path: 'a.bin', content: 'x', size: 3 * GIB },
    { path: 'b.bin', content: 'x', size: 3 * GIB },
  ];
  const [first] = large;
  const many = Array.from({ length: 20_001 }, (_, index) => ({ path: `${index}` }));
  for (const [name, bytes, message] of [
    ['large.zip', zipOf(large), /has more than 4 GiB, unpacked, which is too much for a model/],
    ['large.tgz', tarOf([{ path: 'a.bin', content: 'x', size: 5 * GIB }]), /has more than 4 GiB, unpacked/],
    [
      'lying.zip',
      zipOf([SAFE, { ...(first as ArchiveEntry), size: 9 }]),
      /a\.bin cannot be unpacked: it is damaged: not enough bytes/,
    ],
    [
      'more.zip',
      zipOf([{ path: 'a.bin', content: 'x'.repeat(100_000), size: 9 }]),
      /a\.bin cannot be unpacked: it is damaged: too many bytes/,
    ],
    ['many.zip', zipOf(many), /has more than 20000 files: name the folder of the model itself/],
    ['many.tgz', tarOf(many), /has more than 20000 files/],
  ] as const) {
    writeFileSync(join(folder.path, name), bytes);
    const { source } = await openSource(join(folder.path, name));
    const copied = source
      .list()
      .then(() => source.copy(new Map([['a.bin', join(folder.path, 'out', name)]])));
    await expect(copied, name).rejects.toThrow(message);
  }
});

test('a file that is no archive is refused with the kinds that are read', async () => {
  await using folder = await temporaryFolder();
  for (const content of ['', 'PK', 'hello', 'Rar!\x1a\x07\x01\x00']) {
    writeFileSync(join(folder.path, 'x'), content);
    await expect(openSource(join(folder.path, 'x'))).rejects.toThrow(
      /neither a folder nor an ONNX file nor an archive \(\.zip, \.jar, \.whl, \.tar, \.tgz, \.tar\.gz\)/,
    );
  }
  await expect(openSource(join(folder.path, 'missing'))).rejects.toThrow(/no such file or folder/);
});
