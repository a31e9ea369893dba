import type { Row } from '../../../core/sql-row.ts';
import type { Engine } from './sql.ts';

/** The tables of a namespace that does not exist: every query has no rows, and there is nothing to change. */
export const EMPTY_ENGINE: Engine = {
  all: async (): Promise<Row[]> => [],
  run: async () => 0,
  insert: async () => undefined,
  insertEntities: async () => undefined,
  among: (column, place) => `${column} = ${place}`,
  list: () => null,
  matches: () => 'false',
  wordQuery: () => null,
  turnWords: () => ({ columns: '', values: '', parameters: [] }),
  insertVectors: async () => undefined,
  nearest: async () => [],
  lexical: async () => [],
  frequencies: async (terms) => ({ total: 0, counts: new Map(terms.map((term) => [term, 0])) }),
  turnCounts: async () => new Map(),
  turnsByWords: async () => [],
  bytes: async () => 0,
};
