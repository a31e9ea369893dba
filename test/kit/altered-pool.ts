import type { Client, Pool } from '../../src/core/postgres-pool.ts';

export type Alter = (row: Readonly<Record<string, unknown>>) => unknown;

/**
 * A pool whose rows are altered on their way from the server, as a pooler, a view in place of a table or a restored backup
 * of another program might do.
 */
export function alteredPool(pool: Pool): { readonly pool: Pool; alter: Alter } {
  const altered = {
    alter: (row: Readonly<Record<string, unknown>>): unknown => row,
    pool: {
      connect: async (): Promise<Client> => {
        const client = await pool.connect();
        return { query: answered(client), release: (destroy) => client.release(destroy) };
      },
      query: (text: string, values?: unknown[]) => answered(pool)(text, values),
      end: () => pool.end(),
    },
  };
  const answered =
    (connection: Pick<Pool, 'query'>): Pool['query'] =>
    async (text, values) => {
      const result = await connection.query(text, values);
      return { ...result, rows: result.rows.map((row) => altered.alter({ ...(row as object) })) };
    };
  return altered;
}

/** What a column may have in place of a value of its type; `undefined`: the column is missing. */
export const SHAPES: readonly unknown[] = [
  undefined,
  null,
  true,
  'other',
  '',
  -1,
  1e300,
  Number.NaN,
  {},
  [],
  [1],
];

/** The row with another value in one column, or without it. */
export function withColumn(row: Readonly<Record<string, unknown>>, column: string, value: unknown): object {
  if (!(column in row)) return row;
  const { [column]: _, ...others } = row;
  return value === undefined ? others : { ...others, [column]: value };
}
