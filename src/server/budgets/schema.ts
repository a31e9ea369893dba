import type { DatabaseSchema } from '../kernel/database.ts';

/**
 * Tables of virtual keys and of what budgets have spent. `agctl_key_changes` and `agctl_spending_writer` have one row: how
 * often keys have changed, and which process has read or charged counters last. In SQLite, `agctl_spending_journal` has charges that are not
 * in `agctl_spending` yet; `agctl_spending_totals` are both.
 */
export const budgetsSchema: DatabaseSchema = {
  feature: 'budgets',
  migrations: [
    { sqlite: scripts('INTEGER', ' WITHOUT ROWID'), postgres: scripts('BIGINT', '') },
    {
      sqlite: `CREATE TABLE agctl_spending_journal (id INTEGER PRIMARY KEY, charges TEXT NOT NULL);
CREATE VIEW agctl_spending_totals AS SELECT counter, start, sum(spent) AS spent FROM (
  SELECT counter, start, spent FROM agctl_spending
  UNION ALL SELECT value ->> 0, value ->> 1, value ->> 2 FROM agctl_spending_journal, json_each(charges)
) GROUP BY counter, start;
`,
      postgres: '',
    },
  ],
};

function scripts(integer: string, withoutRowid: string): string {
  return `CREATE TABLE IF NOT EXISTS agctl_spending (
  counter TEXT NOT NULL,
  start ${integer} NOT NULL,
  spent ${integer} NOT NULL,
  PRIMARY KEY (counter, start)
)${withoutRowid};
CREATE INDEX IF NOT EXISTS agctl_spending_start ON agctl_spending (start);
CREATE TABLE IF NOT EXISTS agctl_spending_writer (id ${integer} PRIMARY KEY, writer ${integer} NOT NULL);
INSERT INTO agctl_spending_writer (id, writer) VALUES (1, 0) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS agctl_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  hint TEXT NOT NULL,
  settings TEXT NOT NULL,
  created_at ${integer} NOT NULL,
  revoked_at ${integer}
);
CREATE UNIQUE INDEX IF NOT EXISTS agctl_keys_name ON agctl_keys (name) WHERE revoked_at IS NULL;
CREATE TABLE IF NOT EXISTS agctl_key_changes (id ${integer} PRIMARY KEY, count ${integer} NOT NULL);
INSERT INTO agctl_key_changes (id, count) VALUES (1, 0) ON CONFLICT DO NOTHING;
`;
}
