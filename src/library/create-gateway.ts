import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfigFile } from '../server/config/load.ts';
import type { Gateway, GatewayOptions } from './api.ts';
import type { GatewayConfig } from './config-types.ts';
import { OwnGateway } from './own-gateway.ts';
import { startProgram } from './start-program.ts';

/**
 * Starts a gateway in this program.
 *
 * @param config A configuration, or the path or `file:` URL of a file with one (YAML).
 * @throws ConfigError if the configuration is not valid, `Error` if its file cannot be read or a port cannot be opened
 */
export async function createGateway(
  config: GatewayConfig | string | URL,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const path = pathOf(config);
  const folder = options.folder ?? (path === undefined ? process.cwd() : dirname(path));
  const text = path === undefined ? JSON.stringify(config) : readConfigFile(path);
  const program = await startProgram({ ...options, path, folder, text });
  return new OwnGateway(program);
}

/** The absolute path of the file of a configuration. */
function pathOf(config: GatewayConfig | string | URL): string | undefined {
  if (config instanceof URL) return fileURLToPath(config);
  return typeof config === 'string' ? resolve(config) : undefined;
}
