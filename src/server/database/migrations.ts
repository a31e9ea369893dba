import type { DatabaseSchema } from '../kernel/database.ts';
import { DatabaseError } from './driver.ts';

/** Table with the version of each feature's tables. */
export const VERSIONS = 'agctl_schema';

export const CREATE_VERSIONS = `CREATE TABLE IF NOT EXISTS ${VERSIONS} (feature TEXT PRIMARY KEY, version INTEGER NOT NULL)`;

export const SET_VERSION = `INSERT INTO ${VERSIONS} (feature, version) VALUES (?, ?) ON CONFLICT (feature) DO UPDATE SET version = excluded.version`;

/**
 * The scripts that are missing in a database with these versions, in order.
 *
 * @param name Of the database, for messages
 * @throws DatabaseError if a newer agctl has written it
 */
export function missingMigrations(
  name: string,
  kind: 'sqlite' | 'postgres',
  schemas: readonly DatabaseSchema[],
  versions: ReadonlyMap<string, number>,
): { readonly feature: string; readonly version: number; readonly script: string }[] {
  return schemas.flatMap(({ feature, migrations }) => {
    const version = versions.get(feature) ?? 0;
    if (version > migrations.length)
      throw new DatabaseError(
        `${name} was written by a newer agctl (\`${feature}\` has version ${version}, this one supports ${migrations.length})`,
        'install that version again, or name another database',
      );
    return migrations
      .slice(version)
      .map((scripts, index) => ({ feature, version: version + index + 1, script: scripts[kind] }));
  });
}

/** What is said of tables that are not as the scripts of all versions make them. @param name Of the database */
export const otherTables = (name: string, { feature, migrations }: DatabaseSchema): string =>
  `${name}: the tables of \`${feature}\` are not those of version ${migrations.length}`;
