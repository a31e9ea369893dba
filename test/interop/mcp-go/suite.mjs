// Clients and servers of the Go SDK mark3labs/mcp-go, which many agents are built with.
import { goProgram } from '../go-program.mjs';

export const { missing, start } = goProgram(import.meta.dirname, 'MCP_GO');
