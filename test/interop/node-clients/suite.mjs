// The command line of the MCP Inspector, and mcp-remote, which connects stdio clients to HTTP servers. npm installs them here.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const packages = ['@modelcontextprotocol/inspector@2.12.0', 'mcp-remote@0.15.1'];

export function missing() {
  return undefined;
}

export async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-node-clients-'));
  const stop = async () => rmSync(folder, { recursive: true, force: true });
  try {
    // Their install scripts only set up pages for browsers.
    const args = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', ...packages];
    await promisify(execFile)('npm', args, { cwd: folder, timeout: 600_000 });
  } catch (error) {
    await stop();
    throw new Error(`the clients could not be installed: ${error.stderr || error.message}`);
  }
  return { env: { NODE_CLIENTS: folder }, stop };
}
