import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../../..');

/** Markdown files of a folder of this project, in order: a corpus that is there anyway. */
export function filesIn(folder: string): [path: string, text: string][] {
  return globSync('*.md', { cwd: join(ROOT, folder) })
    .sort()
    .map((path) => [path, readFileSync(join(ROOT, folder, path), 'utf8')]);
}
