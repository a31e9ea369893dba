import { AdminAddressError } from '../admin/open.ts';
import { type AdminServer, startAdmin } from '../admin/server.ts';
import type { AdminSources } from '../admin/sources.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CommandError } from '../core/exit-codes.ts';
import { membersOf } from '../core/foreign.ts';
import { LISTEN_ADDRESS_FORMS, parseListenAddress } from '../core/listen.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import { parseAddress } from './proxy/address.ts';
import { gatewayAt } from './proxy/admin-client.ts';

/** Both loopback addresses, because `localhost` may resolve to either. */
const DEFAULT_ADDRESS = 'localhost:15000';
const KEY = ['config', 'adminAddr'];

/**
 * The address of the admin server in the configuration cannot be opened. Carries a diagnostic with the place in the
 * file.
 */
export class ConfiguredAdminAddressError extends Error {
  readonly diagnostic: Diagnostic;

  constructor(diagnostic: Diagnostic) {
    super(diagnostic.message);
    this.name = 'ConfiguredAdminAddressError';
    this.diagnostic = diagnostic;
  }
}

/**
 * Opens the admin server at ADMIN_ADDR, else at the address in the configuration, else at the default. Returns
 * undefined if it is off, or if the default address is in use: the latter is logged, and the gateway starts anyway.
 *
 * @throws CommandError if ADMIN_ADDR is not usable
 * @throws ConfiguredAdminAddressError if the configured address cannot be opened
 */
export async function openAdminServer(sources: AdminSources): Promise<AdminServer | undefined> {
  const { log } = sources;
  const { config, source, runtime } = sources.served();
  const fromEnv = runtime.env['ADMIN_ADDR'] ?? '';
  const isConfigured = isWritten(source);
  const text = fromEnv || (isConfigured ? config.config.adminAddr : DEFAULT_ADDRESS);
  const address = parseListenAddress(text);
  if (address === undefined)
    throw new CommandError('usage', `ADMIN_ADDR is not an address: ${LISTEN_ADDRESS_FORMS}`);
  if (address.kind === 'off') return undefined;
  try {
    return await startAdmin(address, sources);
  } catch (error) {
    if (!(error instanceof AdminAddressError)) throw error;
    if (fromEnv !== '')
      throw new CommandError(
        'not_ok',
        error.message,
        'ADMIN_ADDR sets the address; `off` disables the admin server',
      );
    if (isConfigured) throw new ConfiguredAdminAddressError(diagnosticOf(error, source));
    const other = await gatewayAt(parseAddress(DEFAULT_ADDRESS, 'config.adminAddr'));
    log.warn('admin', 'the admin server is disabled', {
      problem: error.message,
      ...(other === undefined ? {} : { usedBy: other }),
      help: `commands without --admin reach ${other === undefined ? 'whatever listens there' : 'that gateway'}: set config.adminAddr to another address, such as localhost:15001, and use --admin localhost:15001; or set it to off`,
    });
    return undefined;
  }
}

function isWritten({ value }: YamlSource): boolean {
  return membersOf(membersOf(value)['config'])['adminAddr'] !== undefined;
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
