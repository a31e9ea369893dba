import { readFileSync } from 'node:fs';
import { membersOf, parseJson, textIn } from './foreign.ts';
import { PACKAGE_ROOT } from './package-root.ts';

const { name, version } = membersOf(parseJson(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8')));

/** The version in package.json. */
export const VERSION: string = textIn(version);

/** The name in package.json, which npm knows this program by. The command is `agctl`, whatever the name of the package. */
export const PACKAGE_NAME: string = textIn(name);
