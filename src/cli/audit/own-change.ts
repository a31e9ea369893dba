import { hash } from 'node:crypto';
import { userInfo } from 'node:os';
import { dirname, resolve } from 'node:path';
import { membersOf, stringIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { YamlSource } from '../../core/yaml/source.ts';
import { Audit } from '../../server/audit/audit.ts';
import type { Context } from '../context.ts';

/**
 * Says in the file of `config.audit` that this command has written a configuration. A running gateway says in its own audit that it has read it.
 *
 * @param file as named, relative to the working folder
 */
export async function auditWrite(
  { command, file, before, after }: Record<'command' | 'file' | 'before' | 'after', string>,
  { cwd, env, stderr }: Context,
): Promise<void> {
  const path = resolve(cwd, file);
  // Of a file with mistakes, too.
  const { value } = YamlSource.parse(after, file, env).source;
  const target = stringIn(membersOf(membersOf(membersOf(value)['config'])['audit'])['file']);
  if (target === undefined) return;
  const audit = new Audit({
    log: SILENT_LOG,
    file: resolve(dirname(path), target),
    database: undefined,
    retention: undefined,
    limits: LIMITS,
    failed: () =>
      void stderr.write(`warning: the change could not be written to ${target}, the audit file\n`),
  });
  await audit.record({
    action: 'configuration.write',
    outcome: 'done',
    actor: { kind: 'local', name: userInfo().username },
    target: path,
    before: hash('sha256', before),
    after: hash('sha256', after),
    detail: command,
  });
}
