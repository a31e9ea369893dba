import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** The licences of all packages in the chunks of a bundle, which require that they are distributed with it. */
export function thirdPartyNotices(chunks, root) {
  const folders = chunks.flatMap(({ moduleIds = [] }) => moduleIds.flatMap((id) => packageFolder(id) ?? []));
  const texts = [...new Set(folders)].sort().map((folder) => notice(folder, root));
  return `The program contains these packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}

/** The folder below node_modules that a module belongs to. */
const packageFolder = (id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0];

function notice(folder, root) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(?:\.\w+)?$/i.test(entry));
  if (file === undefined)
    throw new Error(`${relative(root, folder)} has no licence file: bundle another package`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}
