// The time of every regular expression, judged by recheck; installed here from npm, with a parser that finds them.
import { npmPackages } from '../npm-packages.mjs';

export const { missing, start } = npmPackages('EXPRESSIONS', [
  'recheck@4.5.0',
  'recheck-linux-x64@4.5.0',
  'oxc-parser@0.159.0',
]);
