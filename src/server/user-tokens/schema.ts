import type { DatabaseSchema } from '../kernel/database.ts';

/**
 * Tables of the tokens with which the gateway calls MCP servers in the name of its users, of sign-ins that have begun, and of the
 * gateway as a client of authorization servers. Columns `sealed` are encrypted (`seal.ts`); ids of sign-ins and `state` are hashes.
 */
export const userTokensSchema: DatabaseSchema = {
  feature: 'userTokens',
  migrations: [{ sqlite: scripts('INTEGER'), postgres: scripts('BIGINT') }],
};

function scripts(integer: string): string {
  return `CREATE TABLE IF NOT EXISTS agctl_user_tokens (
  owner TEXT NOT NULL,
  server TEXT NOT NULL,
  who TEXT NOT NULL,
  scope TEXT NOT NULL,
  generation TEXT NOT NULL,
  sealed TEXT NOT NULL,
  created_at ${integer} NOT NULL,
  expires_at ${integer},
  renewing_until ${integer} NOT NULL,
  PRIMARY KEY (owner, server)
);
CREATE TABLE IF NOT EXISTS agctl_sign_ins (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  server TEXT NOT NULL,
  state TEXT UNIQUE,
  sealed TEXT NOT NULL,
  attempts ${integer} NOT NULL,
  expires_at ${integer} NOT NULL
);
CREATE INDEX IF NOT EXISTS agctl_sign_ins_owner ON agctl_sign_ins (owner, server);
CREATE TABLE IF NOT EXISTS agctl_oauth_clients (
  issuer TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  sealed TEXT NOT NULL,
  created_at ${integer} NOT NULL,
  PRIMARY KEY (issuer, redirect_uri)
);
`;
}
