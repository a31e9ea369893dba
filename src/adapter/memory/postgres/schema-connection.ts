import type { Connection } from './connection.ts';

/** Names of tables and of the text search configuration, which may be quoted as a whole; and other texts in quotes. */
const OURS = /\b(memory_[a-z_]+)|'(memory_[a-z_]+)'|'(?:[^']|'')*'/g;

/**
 * A connection on which every statement names the schema: `memory_x` becomes `schema.memory_x`. A `search_path` would
 * not do, because PostgreSQL skips a schema that was dropped in the meantime and would use the tables of another one.
 * Values are parameters, so only our own statements are changed.
 *
 * @param schema undefined for the tables of `default`; its name needs no quotes (see `schemaName`)
 */
export function inSchema(connection: Connection, schema: string | undefined): Connection {
  if (schema === undefined) return connection;
  return {
    query: (text, values) =>
      connection.query(
        text.replace(OURS, (all, name?: string, quoted?: string) => {
          if (name !== undefined) return `${schema}.${name}`;
          return quoted === undefined ? all : `'${schema}.${quoted}'`;
        }),
        values,
      ),
  };
}
