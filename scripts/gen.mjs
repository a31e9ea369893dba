// `npm run gen`: writes man/ from the command tree, the configuration schema and the error tables.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { referenceFiles } from '../src/cli/man.ts';
import { root } from './run.mjs';

const folder = join(root, 'man');
const files = referenceFiles();
mkdirSync(folder, { recursive: true });
// Removes the page of a command that no longer exists.
for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name), { recursive: true });
for (const [name, text] of files) writeFileSync(join(folder, name), text);
process.stderr.write(`wrote ${files.size} files to man/\n`);
