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
 * Returns the text, the errors that no entry is responsible for, and the warnings.
 */
export async function validConfig(
  imported: Imported,
  compose: () => string,
  surroundings: Surroundings,
): Promise<{ text: string; errors: readonly Diagnostic[]; warnings: readonly Diagnostic[] }> {
  for (;;) {
    const text = compose();
    const found = await problemsOf(text, surroundings);
    const errors = found.filter(isError);
    const dropped = errors.some((error) => leaveOut(error, imported));
    // The report lists variables that are not filled in.
    const warnings = found.filter(({ severity, code }) => severity === 'warning' && code !== 'AGW0317');
    if (!dropped) return { text, errors, warnings };
  }
}

/** Errors of a text as a configuration file. */
export const errorsOf = async (text: string, surroundings: Surroundings): Promise<Diagnostic[]> =>
  (await problemsOf(text, surroundings)).filter(isError);

const isError = ({ severity }: Diagnostic): boolean => severity === 'error';

const problemsOf = (text: string, { file, folder, env }: Surroundings): Promise<readonly Diagnostic[]> =>
  findProblems(loadConfigText(text, file, env), { folder, env });

function leaveOut({ path, message, help }: Diagnostic, imported: Imported): boolean {
  const [section, list, index, ...inner] = path;
  const reason = help === undefined ? message : `${message} (${help})`;
  const lists: Readonly<Record<string, ImportedEntry[]>> = {
    'mcp.targets': imported.targets,
    'llm.models': imported.models,
    'llm.virtualModels': imported.virtualModels,
  };
  if (list === 'policies' && (section === 'llm' || section === 'mcp'))
    return leaveOutPolicy(
      section === 'llm' ? imported.policies : imported.mcpPolicies,
      `${section}.policies`,
    );
  const entries = lists[`${section}.${list}`];
  if (entries === undefined || typeof index !== 'number') return false;
  if (list === 'virtualModels' && leaveOutTarget(entries[index], inner)) return true;
  const [entry] = entries.splice(index, 1);
  if (entry === undefined) return false;
  const what = entry.source === '' ? entry.value.name : `${entry.value.name} in ${entry.source}`;
  imported.leftOut.push({ what, reason, isWarning: section === 'llm' });
  return true;

  /** A policy, such as the guardrails of all models. What was refused or limited by it is not any more. */
  function leaveOutPolicy(policies: Record<string, unknown>, place: string): boolean {
    const key = String(index);
    if (!Object.hasOwn(policies, key)) return false;
    delete policies[key];
    imported.leftOut.push({ what: `\`${place}.${key}\``, reason, isWarning: true });
    return true;
  }
}

/** Leaves out the target of a virtual model, whose own model was left out before, unless it is the last one. */
function leaveOutTarget(entry: ImportedEntry | undefined, [, kind, , target]: readonly unknown[]): boolean {
  const { targets } = membersOf(membersOf(entry?.value['routing'])[textIn(kind)]);
  if (!Array.isArray(targets) || targets.length < 2 || typeof target !== 'number') return false;
  targets.splice(target, 1);
  return true;
}
