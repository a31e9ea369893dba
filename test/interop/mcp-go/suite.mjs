// Clients and servers of the Go SDK mark3labs/mcp-go, which many agents are built with.
import { goPrograms } from '../go-program.mjs';

export const { missing, start } = goPrograms(import.meta.dirname, { MCP_GO: '.' });
