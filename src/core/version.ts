import { readFileSync } from 'node:fs';
import { membersOf, parseJson, textIn } from './foreign.ts';
import { PACKAGE_ROOT } from './package-root.ts';

/** The version in package.json. */
export const VERSION: string = textIn(
  membersOf(parseJson(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8')))['version'],
);
