import { hash } from 'node:crypto';
import { LIMITS } from '../../../core/limits.ts';
import { auditOf } from '../../audit/audit.ts';
import type { Actor } from '../../audit/event.ts';
import type { RereadProblem } from '../../kernel/files/reloaded-file.ts';
import type { Runtime } from '../runtime.ts';

// What the audit says of reloads: names and hashes, never values.

/** Of what is reloaded because a file has changed. */
export const WATCH: Actor = { kind: 'watch' };

/** Of a text of the configuration. */
export const hashOf = (text: string): string => hash('sha256', text);

/** Fields of the log line of a reload, as the detail of its event. */
export function inWords(changes: Readonly<Record<string, string | undefined>>): string | undefined {
  const parts = Object.entries(changes).flatMap(([what, names]) =>
    names === undefined ? [] : [`${what}: ${names}`],
  );
  return parts.length === 0 ? undefined : `changed: ${parts.join('; ')}`;
}

/** Files that are read again without a reload. */
export const rereadFiles = ({ reloadedFiles, files }: Runtime): string[] =>
  [...reloadedFiles.keys()].filter((file) => !files.includes(file));

/** Says which of `rereadFiles` have changed. What they contain is a secret: `redact` hides it in a problem. */
export async function auditReread(
  { settings }: Runtime,
  changed: readonly string[],
  problem: RereadProblem,
  redact: (text: string) => string,
): Promise<void> {
  if (changed.length === 0) return;
  await auditOf.get(settings)?.record({
    action: 'file.reload',
    outcome: problem === undefined ? 'done' : 'failed',
    actor: WATCH,
    target: changed.slice(0, LIMITS.reloadNames).join(', '),
    ...(problem !== undefined && { detail: redact(`the previous content stays in use: ${problem}`) }),
  });
}
