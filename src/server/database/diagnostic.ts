import type { Diagnostic } from '../../core/diagnostic.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { DatabaseError } from './driver.ts';

/** The error as a diagnostic with its range in the file. */
export function databaseDiagnostic({ message, help }: DatabaseError, source: YamlSource): Diagnostic {
  const path = ['config', 'database', 'url'];
  const range = source.valueRange(path);
  return { severity: 'error', code: 'AGW0403', message, file: source.file, path, range, help };
}
