import { hash } from 'node:crypto';
import { userInfo } from 'node:os';
import { dirname, resolve } from 'node:path';
import { membersOf, stringIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { YamlSource } from '../../core/yaml/source.ts';
import { Audit } from '../../server/audit/audit.ts';
import type { Change } from '../../server/audit/refusals.ts';
import type { Database } from '../../server/kernel/database.ts';
import type { Context } from '../context.ts';

const AUDIT_FILE = ['config', 'audit', 'file'];

/**
 * Says in the file of `config.audit` that this command has written a configuration. A running gateway says in its own audit that it has read it.
 *
 * @param file as named, relative to the working folder
 */
export async function auditWrite(
  { command, file, before, after }: Record<'command' | 'file' | 'before' | 'after', string>,
  context: Context,
): Promise<void> {
  const change = {
    action: 'configuration.write',
    outcome: 'done',
    target: resolve(context.cwd, file),
    before: hash('sha256', before),
    after: hash('sha256', after),
    detail: command,
  } as const;
  await auditOwn(change, { file, text: after }, context);
}

/**
 * Says what this command has done, or tried, in the file of `config.audit` of a configuration, and in a database.
 *
 * @param configuration its file as named, relative to the working folder, and its text, which may have mistakes
 */
export async function auditOwn(
  change: Omit<Change, 'actor'>,
  { file, text }: Record<'file' | 'text', string>,
  { cwd, env, stderr }: Context,
  database?: Database,
): Promise<void> {
  const { source } = YamlSource.parse(text, file, env);
  const written = stringIn(membersOf(membersOf(membersOf(source.value)['config'])['audit'])['file']);
  // A reference to a variable that is not set stays as it is written.
  const isUnset = written !== undefined && source.isPoisoned(AUDIT_FILE);
  if (isUnset)
    stderr.write(
      `warning: the change is not in the audit file: ${AUDIT_FILE.join('.')} refers to a variable that is not set: ${written}\n`,
    );
  const target = isUnset ? undefined : written;
  if (target === undefined && database === undefined) return;
  const audit = new Audit({
    log: SILENT_LOG,
    file: target === undefined ? undefined : resolve(dirname(resolve(cwd, file)), target),
    database,
    gateway: undefined,
    retention: undefined,
    limits: LIMITS,
    failed: (sink) =>
      void stderr.write(
        `warning: the change could not be written to ${sink === 'file' ? `${target}, the audit file` : 'the audit in the database'}\n`,
      ),
  });
  await audit.record({ ...change, actor: { kind: 'local', name: userInfo().username } });
}
