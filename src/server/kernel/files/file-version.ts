import { statSync } from 'node:fs';

/** Identifies a version of a file: changes when it is written, replaced, deleted or created. */
export function fileVersion(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined
    ? ''
    : `${found.dev} ${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}
