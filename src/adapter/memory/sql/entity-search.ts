import { text } from '../../../core/sql-row.ts';
import { nameKey } from '../plain-words.ts';
import type { EntityPage, EntitySearch } from '../store.ts';
import { cutoffValues, isAlive, NOTHING_EXPIRED, type Sql, type Value } from './sql.ts';

/** A page of entities by name: all, those of some types, those with a text in their name or its words in their content. */
export async function searchEntities(sql: Sql, request: EntitySearch): Promise<EntityPage> {
  const { query, types, limit, after, expired = NOTHING_EXPIRED } = request;
  const key = query === undefined ? undefined : nameKey(query);
  if (key === '') return { entities: [], next: null };
  const parameters: Value[] = [limit + 1, ...cutoffValues(expired)];
  const place = (value: Value): string => `$${parameters.push(value)}`;
  const conditions = [
    isAlive(2),
    ...(after === undefined ? [] : [`(name, id) > (${place(after.name)}, ${place(after.id)})`]),
    ...(types === undefined ? [] : [sql.among('type', place(sql.list(types)))]),
    ...(key === undefined
      ? []
      : [
          // A key contains only letters, digits and spaces.
          `(name_key LIKE ${place(`%${key}%`)} OR ${sql.matches('entities', place(sql.wordQuery(key, 'all')))})`,
        ]),
  ];
  const rows = await sql.all(
    `SELECT id, name, type FROM memory_entities WHERE ${conditions.join(' AND ')}
     ORDER BY name, id LIMIT $1`,
    parameters,
  );
  const entities = rows.slice(0, limit).map((row) => ({
    id: text(row, 'id'),
    name: text(row, 'name'),
    type: text(row, 'type'),
  }));
  const last = entities.at(-1);
  return {
    entities,
    next: rows.length > entities.length && last !== undefined ? { name: last.name, id: last.id } : null,
  };
}
