// The command line of the MCP Inspector, and mcp-remote, which connects stdio clients to HTTP servers. npm installs them here.
// Their install scripts only set up pages for browsers.
import { npmPackages } from '../npm-packages.mjs';

export const { missing, start } = npmPackages('NODE_CLIENTS', [
  '@modelcontextprotocol/inspector@2.12.0',
  'mcp-remote@0.15.1',
]);
