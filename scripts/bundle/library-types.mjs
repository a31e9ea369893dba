// The types of the library.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isolatedDeclarationSync } from 'rolldown/experimental';

const ENTRIES = ['library/index.ts', 'library/policy.ts', 'library/testing/index.ts'];

/** Files outside of src/library whose types are public. */
const OTHERS = ['server/policies/modules/api.ts'];

/** Writes dist/types, in the folders of src, from the files whose types are public: the entries, and what their declarations import. */
export function writeLibraryTypes(root) {
  const source = join(root, 'src');
  const output = join(root, 'dist/types');
  rmSync(output, { recursive: true, force: true });
  const files = new Set(ENTRIES.map((name) => join(source, name)));
  for (const file of files) {
    const place = relative(source, file);
    if (!place.startsWith('library/') && !OTHERS.includes(place))
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
}
