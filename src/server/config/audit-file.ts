import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { LocatedProblem } from './plan/plan.ts';
import type { Config } from './schema.ts';

/** A file of `config.audit` that can never be written. One whose folder is missing may get it later, as with volumes. */
export function auditFileProblems({ config: { audit } }: Config, folder: string): LocatedProblem[] {
  if (audit?.file === undefined || !isFolder(resolve(folder, audit.file))) return [];
  return [
    {
      code: 'AGW0104',
      path: ['config', 'audit', 'file'],
      message: 'expected a file, found a folder',
      help: 'add the name of a file, such as `/audit.jsonl`',
    },
  ];
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
