// Writes the types of the library to dist/types, from the files whose types are public: both index.ts, and what their declarations import.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import { isolatedDeclarationSync } from 'rolldown/experimental';
import { root } from './run.mjs';

const started = performance.now();
const source = join(root, 'src/library');
const output = join(root, 'dist/types');
rmSync(output, { recursive: true, force: true });
const files = new Set([join(source, 'index.ts'), join(source, 'testing/index.ts')]);
for (const file of files) {
  const place = relative(source, file);
  if (place.startsWith('..'))
    throw new Error(`${relative(root, file)} is outside src/library: its types are not public`);
  const { code, errors } = isolatedDeclarationSync(file, readFileSync(file, 'utf8'), {});
  if (errors.length > 0) throw new Error(`${place}: ${errors.map(({ message }) => message).join('; ')}`);
  const declaration = code.replace(
    /(\bfrom\s*["']|\bimport\(["'])(\.[^"']+)\.ts(["'])/g,
    (_, before, path, after) => {
      files.add(join(dirname(file), `${path}.ts`));
      return `${before}${path}.js${after}`;
    },
  );
  const written = join(output, place.replace(/\.ts$/, '.d.ts'));
  mkdirSync(dirname(written), { recursive: true });
  writeFileSync(written, declaration);
}
process.stderr.write(`ok  types  (${((performance.now() - started) / 1000).toFixed(1)} s)\n`);
