import type { Gateway, GatewayOptions } from './api.ts';
import type { GatewayConfig } from './config-types.ts';
import { OwnGateway } from './own-gateway.ts';
import { startProgram } from './start-program.ts';

/**
 * Starts a gateway in this program.
 *
 * @param config A configuration, or the path or `file:` URL of a file with one (YAML).
 * @throws ConfigError if the configuration is not valid or a port cannot be opened, `Error` if its file cannot be read
 */
export function createGateway(config: GatewayConfig, options?: GatewayOptions): Promise<Gateway>;
export function createGateway(file: string | URL, options?: GatewayOptions): Promise<Gateway>;
export async function createGateway(
  config: GatewayConfig | string | URL,
  options: GatewayOptions = {},
): Promise<Gateway> {
  return new OwnGateway(await startProgram(config, options));
}
