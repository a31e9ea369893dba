import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Database } from '../kernel/database.ts';
import { Slot } from '../kernel/slot.ts';
import { SignInPages } from './pages.ts';
import { Seal } from './seal.ts';
import type { SignInSettings } from './settings.ts';
import { SignIns } from './sign-ins.ts';
import { UserTokens } from './user-tokens.ts';

/** Sign-ins of users at MCP servers, of this process. All state that lasts is in the database. */
export interface SignInService {
  readonly database: Database;
  readonly seal: Seal;
  readonly signIns: SignIns;
  readonly tokens: UserTokens;
  readonly pages: SignInPages;
}

interface ServiceOptions {
  readonly settings: SignInSettings;
  readonly database: Database;
  /** `config.session.key`. */
  readonly secret: () => Buffer;
  readonly log: Log;
  readonly limits: Limits;
}

export function openSignInService({
  settings,
  database,
  secret,
  log,
  limits,
}: ServiceOptions): SignInService {
  const seal = new Seal(secret);
  const signIns = new SignIns({ database, seal, settings, limits });
  const tokens = new UserTokens({ database, seal, signIns, log, limits });
  return { database, seal, signIns, tokens, pages: new SignInPages(signIns, tokens, log) };
}

/** Undefined without `config.mcp.signIn`, `config.database` or `config.session.key`. */
export const signInService = new Slot<SignInService>();
