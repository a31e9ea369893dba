import type { Command } from 'commander';
import { FILE_OPTION } from './config-program.ts';
import type { Bind } from './context.ts';

/** The commands of `config.database`; returns the group. */
export function databaseCommands(program: Command, run: Bind): Command {
  const database = program
    .command('database')
    .description('copies of the database of a configuration (config.database)');
  database
    .command('backup')
    .argument('[target]', 'new file (default: beside the database)')
    .description('copy the database to a file, while gateways use it')
    .option('-f, --file <path>', FILE_OPTION)
    .addHelpText(
      'after',
      '\nA SQLite file is copied in one consistent state, readable by its user only. For PostgreSQL, the command of its own\ntools is printed.\n\nExamples:\n  agctl database backup\n  agctl database backup -f gateway.yaml /backups/agctl.db\n',
    )
    .action(run(() => import('./commands/database-backup.ts')));
  database
    .command('restore')
    .argument('<copy>', 'file to restore')
    .description('replace the database by a copy; the gateway must be stopped')
    .option('-f, --file <path>', FILE_OPTION)
    .option('--revive-keys', 'make keys valid again that were revoked since the copy')
    .addHelpText(
      'after',
      '\nThe present database is copied beside it first. Virtual keys that are revoked in it stay revoked, and are listed. A copy that an earlier agctl has written is migrated by the next start.\n\nExample:\n  agctl database restore data.db.before-migration-20260105T100001000271828Z.backup\n',
    )
    .action(run(() => import('./commands/database-restore.ts')));
  return database;
}
