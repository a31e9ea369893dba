import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A database of its own on the server of MEMORY_DATABASE_URL, whose user must be able to create databases. */
export async function freshDatabase(): Promise<{ url: string; remove(): Promise<void> }> {
  const base = process.env['MEMORY_DATABASE_URL'];
  if (base === undefined)
    throw new Error('run through `npm run test:interop postgres`, or set MEMORY_DATABASE_URL');
  const name = `agctl_test_${randomBytes(6).toString('hex')}`;
  const run = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: base });
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await run(`CREATE DATABASE ${name}`);
  const url = new URL(base);
  url.pathname = `/${name}`;
  return { url: url.href, remove: () => run(`DROP DATABASE ${name} WITH (FORCE)`) };
}
