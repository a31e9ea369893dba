import { type Command, Option } from 'commander';
import { AUDIT_OUTCOMES } from '../core/audit-view.ts';
import type { Bind } from './context.ts';
import { WHICH_GATEWAY, withAdminOptions } from './proxy-program.ts';

/** Adds `agctl audit`. */
export function auditCommand(program: Command, run: Bind): void {
  withAdminOptions(
    program
      .command('audit')
      .description('list who has changed what through the admin server, newest first')
      .option('--since <time>', 'only events since then: 10m ago, or 2026-01-31T12:00:00Z')
      .option('-n, --tail <n>', 'at most the last n events (default: 100)')
      .option('--action <name>', 'only these, such as key.create or configuration.reload')
      .option('--actor <name>', 'only of this subject, user or key')
      .addOption(new Option('--outcome <outcome>', 'only events that ended so').choices(AUDIT_OUTCOMES))
      .option('-f, --file <file>', 'read config.database of this file, in place of asking a running gateway')
      .addOption(
        new Option('-o, --output <format>', 'text, or json: one object a line with all members')
          .choices(['text', 'json'])
          .default('text'),
      ),
  )
    .addHelpText(
      'after',
      `${WHICH_GATEWAY}\nA gateway without a database has the last 1000 events since its start.\n\nExamples:\n  agctl audit --since 7d\n  agctl audit --action key.create --actor ann\n  agctl audit -f gateway.yaml -o json | jq .target\n`,
    )
    .action(run(() => import('./commands/audit.ts')));
}
