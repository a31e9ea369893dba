// Clients and servers of the official Python SDK and of FastMCP, which are installed here from PyPI.
import { pythonPackages } from '../python-packages.mjs';

export const { missing, start } = pythonPackages('MCP_PYTHON', ['mcp==2.3.0', 'fastmcp==4.2.3']);
