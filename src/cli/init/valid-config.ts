import type { Diagnostic } from '../../core/diagnostic.ts';
import { membersOf, textIn } from '../../core/foreign.ts';
import { loadConfigText } from '../../server/config/load.ts';
import { findProblems } from '../../server/runtime/find-problems.ts';
import type { Imported, ImportedEntry } from './imported.ts';

interface Surroundings {
  /** Path of the file that is written. */
  readonly file: string;
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Composes a configuration until it has no errors: an imported entry with one is left out, with the error as the reason.
 * Returns the text, and the errors that no entry is responsible for.
 */
export async function validConfig(
  imported: Imported,
  compose: () => string,
  surroundings: Surroundings,
): Promise<{ text: string; errors: readonly Diagnostic[] }> {
  for (;;) {
    const text = compose();
    const errors = await errorsOf(text, surroundings);
    const dropped = errors.some((error) => leaveOut(error, imported));
    if (!dropped) return { text, errors };
  }
}

/** Errors of a text as a configuration file. */
export async function errorsOf(text: string, { file, folder, env }: Surroundings): Promise<Diagnostic[]> {
  const loaded = loadConfigText(text, file, env);
  const found = await findProblems(loaded, { folder, env });
  return found.filter(({ severity }) => severity === 'error');
}

function leaveOut({ path, message, help }: Diagnostic, imported: Imported): boolean {
  const [section, list, index, ...inner] = path;
  const lists: Readonly<Record<string, ImportedEntry[]>> = {
    'mcp.targets': imported.targets,
    'llm.models': imported.models,
    'llm.virtualModels': imported.virtualModels,
  };
  const entries = lists[`${section}.${list}`];
  if (entries === undefined || typeof index !== 'number') return false;
  if (list === 'virtualModels' && leaveOutTarget(entries[index], inner)) return true;
  const [entry] = entries.splice(index, 1);
  if (entry === undefined) return false;
  const what = entry.source === '' ? entry.value.name : `${entry.value.name} in ${entry.source}`;
  imported.leftOut.push({
    what,
    reason: help === undefined ? message : `${message} (${help})`,
    isWarning: section === 'llm',
  });
  return true;
}

/** Leaves out the target of a virtual model, whose own model was left out before, unless it is the last one. */
function leaveOutTarget(entry: ImportedEntry | undefined, [, kind, , target]: readonly unknown[]): boolean {
  const { targets } = membersOf(membersOf(entry?.value['routing'])[textIn(kind)]);
  if (!Array.isArray(targets) || targets.length < 2 || typeof target !== 'number') return false;
  targets.splice(target, 1);
  return true;
}
