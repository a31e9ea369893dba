// Bundles the program and the library into dist/cli: a file for each command, and one for what commands share (docs/decisions/0043).
// The types of the library go to dist/types.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { rolldown } from 'rolldown';
import { fileOfExport, lazyNodeModules } from './bundle/lazy-node-modules.mjs';
import { writeLibraryTypes } from './bundle/library-types.mjs';
import { thirdPartyNotices } from './bundle/third-party-notices.mjs';
import { root } from './run.mjs';

/** Files that something starts or imports by name. */
const ENTRIES = {
  main: 'src/cli/main.ts',
  library: 'src/library/index.ts',
  policy: 'src/library/policy.ts',
  testing: 'src/library/testing/index.ts',
  'sqlite-worker': 'src/adapter/memory/sqlite/worker.ts',
  'database-worker': 'src/server/database/sqlite-thread.ts',
  'onnx-worker': 'src/adapter/memory/embed/onnx/worker.ts',
};

/** What processes and threads load at their start. */
const STARTS = {
  main: ['src/cli/main.ts'],
  config: ['src/cli/commands/config-validate.ts'],
  gateway: ['src/cli/commands/gateway-serve.ts'],
  admin: ['src/admin/app.ts'],
  memory: ['src/cli/commands/memory-serve.ts'],
  store: [ENTRIES['sqlite-worker'], ENTRIES['database-worker']],
};

/**
 * Node.js spends half a millisecond on each module file, so all that a start loads is one file, except what others load
 * too: a process of the memory loads no schemas of gateways. A module is in the first file here whose starts all load it; one
 * of none is split by the commands that use it.
 */
const FILES = {
  base: ['main'],
  'config-store': ['config', 'store'],
  'config-memory': ['config', 'memory'],
  'memory-store': ['memory', 'store'],
  config: ['config'],
  'gateway-memory': ['gateway', 'memory'],
  gateway: ['gateway'],
  'admin-memory': ['admin', 'memory'],
  admin: ['admin'],
  memory: ['memory'],
};

/** The name of a module's file, or null. */
const fileOf = (file) => (id, context) => {
  modulesOf ??= Object.fromEntries(
    Object.entries(STARTS).map(([name, files]) => [name, loadedBy(files, context)]),
  );
  return FILES[file].every((start) => modulesOf[start].has(id)) ? file : null;
};
let modulesOf;

/** Files, and the modules that they import, directly or not. */
function loadedBy(files, context) {
  const found = new Set(files.map((file) => join(root, file)));
  for (const id of found)
    for (const imported of context.getModuleInfo(id)?.importedIds ?? []) found.add(imported);
  return found;
}

/** Packages that the program loads by `require`, at their first use: a file each. */
const ON_DEMAND = [
  '@marcbachmann/cel-js',
  '@smithy/core/checksum',
  '@smithy/core/event-streams',
  '@smithy/signature-v4',
  'ioredis',
  'jsonc-parser',
  'libphonenumber-js',
  'prom-client',
  're2js',
  'tar/parse',
  'undici',
];
const fileOfPackage = (name) => name.replace(/^@.*\//, '').replace('/', '-');

/** Names those files instead of the packages. */
const onDemand = {
  name: 'on-demand',
  transform: (code) =>
    ON_DEMAND.reduce(
      (text, name) =>
        text.replaceAll(`(import.meta.url)('${name}')`, `(import.meta.url)('./${fileOfPackage(name)}.cjs')`),
      code,
    ),
};

/** V8 keeps a text with one character outside Latin-1 in two bytes per character, and decodes ASCII fastest. */
const asciiOnly = {
  name: 'ascii-only',
  renderChunk(code) {
    if (/String\.raw`[^`]*[^\0-\x7f]/.test(code))
      throw new Error('String.raw with a character outside ASCII');
    return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  },
};

const started = performance.now();
const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
// Packages that are installed with this one stay outside; those of devDependencies are bundled.
const installed = Object.keys({ ...dependencies, ...peerDependencies });
const isInstalled = (id) => installed.some((name) => id === name || id.startsWith(`${name}/`));

const options = {
  cwd: root,
  platform: 'node',
  // Ink looks for the developer tools of React when DEV=true, and goes on without them.
  external: (id) => isInstalled(id) || id === 'react-devtools-core',
  // The oldest Node.js that package.json allows, which has no `await using`.
  transform: { define: { 'process.env.NODE_ENV': '"production"' }, target: 'node22.19' },
  // Every problem that it reports is an error in one of the files above. That a busy machine is slow is none.
  checks: { bundlerTimings: false },
  onLog: (level, { message }) => {
    if (level === 'warn') throw new Error(message);
  },
};
const output = {
  dir: join(root, 'dist/cli'),
  // Names and lines remain, for stack traces and profiles.
  minify: false,
  comments: { legal: true, annotation: false, jsdoc: false },
};

const program = await build(
  { ...options, input: ENTRIES, plugins: [lazyNodeModules(), onDemand, asciiOnly] },
  {
    ...output,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    cleanDir: true,
    codeSplitting: {
      groups: [
        { name: fileOfExport, priority: Object.keys(FILES).length + 1, debugName: 'exports of Node.js' },
        ...Object.keys(FILES).map((file, index, { length }) => ({
          name: fileOf(file),
          priority: length - index,
          debugName: file,
        })),
      ],
    },
  },
);
const packages = await Promise.all(
  ON_DEMAND.map((name) =>
    build(
      {
        ...options,
        input: { [fileOfPackage(name)]: name },
        external: [],
        plugins: [asciiOnly],
        // Its `main` gets `require` from a wrapper that a bundler cannot follow.
        resolve: { alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' } },
      },
      { ...output, format: 'cjs', exports: 'named', entryFileNames: '[name].cjs', codeSplitting: false },
    ),
  ),
);
writeFileSync(
  join(root, 'dist/THIRD-PARTY-NOTICES.txt'),
  thirdPartyNotices([...program, ...packages.flat()], root),
);
writeLibraryTypes(root);
process.stderr.write(`ok  program  (${((performance.now() - started) / 1000).toFixed(1)} s)\n`);

async function build(input, output) {
  const bundle = await rolldown(input);
  const written = await bundle.write(output);
  await bundle.close();
  return written.output;
}
