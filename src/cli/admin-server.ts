import { AdminAddressError } from '../admin/open.ts';
import type { AdminServer } from '../admin/server.ts';
import type { AdminSources } from '../admin/sources.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CommandError } from '../core/exit-codes.ts';
import { LISTEN_ADDRESS_FORMS, parseListenAddress } from '../core/listen.ts';
import type { YamlSource } from '../core/yaml/source.ts';

/** Both loopback addresses: `localhost` may mean either. */
const DEFAULT_ADDRESS = 'localhost:15000';
const KEY = ['config', 'adminAddr'];

/** The address in the configuration cannot be opened: the problem, at its place in the file. */
export class AdminAddressProblem extends Error {
  readonly diagnostic: Diagnostic;

  constructor(diagnostic: Diagnostic) {
    super(diagnostic.message);
    this.diagnostic = diagnostic;
  }
}

/**
 * Opens the admin server where ADMIN_ADDR says, or the configuration, or at the default. Undefined when it is off, or
 * when the default is taken by another process: that is logged and does not keep the gateway from serving.
 *
 * @throws CommandError for what ADMIN_ADDR says
 * @throws AdminAddressProblem for what the configuration says
 */
export async function openAdminServer(sources: AdminSources): Promise<AdminServer | undefined> {
  const { env, log } = sources;
  const { config, source } = sources.served();
  const fromEnv = env['ADMIN_ADDR'] ?? '';
  const isConfigured = isWritten(source);
  const text = fromEnv || (isConfigured ? config.config.adminAddr : DEFAULT_ADDRESS);
  const address = parseListenAddress(text);
  if (address === undefined)
    throw new CommandError('usage', `ADMIN_ADDR is not an address: ${LISTEN_ADDRESS_FORMS}`);
  if (address.kind === 'off') return undefined;
  // Loaded on use: a gateway without it starts faster.
  const { startAdmin } = await import('../admin/server.ts');
  try {
    return await startAdmin(address, sources);
  } catch (error) {
    if (!(error instanceof AdminAddressError)) throw error;
    if (fromEnv !== '')
      throw new CommandError('not_ok', error.message, 'ADMIN_ADDR sets the address; `off` does without it');
    if (isConfigured) throw new AdminAddressProblem(diagnosticOf(error, source));
    log.warn('admin', 'there is no admin server', {
      problem: error.message,
      help: 'set config.adminAddr to another address, or to off',
    });
    return undefined;
  }
}

function isWritten({ value }: YamlSource): boolean {
  return (value as { config?: { adminAddr?: unknown } } | null)?.config?.adminAddr !== undefined;
}

function diagnosticOf(error: AdminAddressError, source: YamlSource): Diagnostic {
  return {
    severity: 'error',
    code: 'AGW0401',
    message: error.message,
    file: source.file,
    path: KEY,
    range: source.valueRange(KEY),
    help: 'set another address here, or `off`',
  };
}
