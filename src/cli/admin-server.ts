import { AdminAddressError } from '../admin/open.ts';
import { type OpenAdmin, openAdmin } from '../admin/server.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CommandError } from '../core/exit-codes.ts';
import { membersOf } from '../core/foreign.ts';
import { LISTEN_ADDRESS_FORMS, type ListenAddress, overlap, parseListenAddress } from '../core/listen.ts';
import type { Log } from '../core/log.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import { addressOf } from '../server/config/plan/plan.ts';
import type { CurrentConfig } from '../server/runtime/reload/live-config.ts';
import type { Runtime } from '../server/runtime/runtime.ts';
import { parseAddress } from './proxy/address.ts';
import { gatewayAt } from './proxy/admin-client.ts';

/** Both loopback addresses, because `localhost` may resolve to either. */
const DEFAULT_ADDRESS = 'localhost:15000';
const KEY = ['config', 'adminAddr'];

/** What the configuration names cannot be opened, such as an address. Carries a diagnostic with the place in the file. */
export class UnopenedError extends Error {
  readonly diagnostic: Diagnostic;

  constructor(diagnostic: Diagnostic) {
    super(diagnostic.message);
    this.name = 'UnopenedError';
    this.diagnostic = diagnostic;
  }
}

/**
 * Opens the address of the admin server: ADMIN_ADDR, else that of the configuration, else the default. Returns undefined if it is
 * off, or if the default address is in use: the latter is logged, and the gateway starts anyway, unless `ui` needs the server.
 *
 * @throws CommandError if ADMIN_ADDR is not usable
 * @throws UnopenedError if the configured address cannot be opened
 */
export async function openAdminServer(current: CurrentConfig, log: Log): Promise<OpenAdmin | undefined> {
  const { config, source, runtime } = current;
  const fromEnv = runtime.env['ADMIN_ADDR'] ?? '';
  const isConfigured = isWritten(source);
  const text = fromEnv || (isConfigured ? config.config.adminAddr : DEFAULT_ADDRESS);
  const address = parseListenAddress(text);
  if (address === undefined)
    throw new CommandError('usage', `ADMIN_ADDR is not an address: ${LISTEN_ADDRESS_FORMS}`);
  if (address.kind === 'off') return undefined;
  if (fromEnv === '' && !isConfigured && hasPortOf(runtime, address))
    return withoutServer(`port ${address.port} is that of a gateway`, current, log);
  try {
    return await openAdmin(address);
  } catch (error) {
    if (!(error instanceof AdminAddressError)) throw error;
    if (fromEnv !== '')
      throw new CommandError(
        'not_ok',
        error.message,
        'ADMIN_ADDR sets the address; `off` disables the admin server',
      );
    if (!isConfigured) return withoutServer(error.message, current, log);
    throw new UnopenedError(
      addressDiagnostic(source, source.valueRange(KEY), {
        message: error.message,
        path: KEY,
        help: `set another address here${config.ui === undefined ? ', or `off`' : ''}`,
      }),
    );
  }
}

/** Whether a gateway has the port of the address: it gets it, which `config validate` says too. */
const hasPortOf = (
  { gateways }: Runtime,
  address: ListenAddress,
): address is ListenAddress & { kind: 'tcp' } =>
  address.kind === 'tcp' && gateways.some(({ plan }) => overlap(address, addressOf(plan)));

/** Says that the gateway starts without an admin server. @throws UnopenedError if `ui` needs it */
async function withoutServer(
  problem: string,
  { config, source }: CurrentConfig,
  log: Log,
): Promise<undefined> {
  // Its pages would be those of another gateway.
  if (config.ui !== undefined)
    throw new UnopenedError(
      addressDiagnostic(source, source.keyRange(['ui']), {
        message: `\`ui\` needs the admin server: ${problem}`,
        path: ['ui'],
        help: 'set `config.adminAddr` to another address, such as `localhost:15001`',
      }),
    );
  const other = await gatewayAt(parseAddress(DEFAULT_ADDRESS, 'config.adminAddr'));
  log.warn('admin', 'the admin server is disabled', {
    problem,
    ...(other === undefined ? {} : { usedBy: other }),
    help: `commands without --admin reach ${other === undefined ? 'whatever listens there' : 'that gateway'}: set config.adminAddr to another address, such as localhost:15001, and use --admin localhost:15001; or set it to off`,
  });
}

function isWritten({ value }: YamlSource): boolean {
  return membersOf(membersOf(value)['config'])['adminAddr'] !== undefined;
}

const addressDiagnostic = (
  { file }: YamlSource,
  range: Diagnostic['range'],
  told: Pick<Diagnostic, 'message' | 'path' | 'help'>,
): Diagnostic => ({ severity: 'error', code: 'AGW0401', file, range, ...told });
