// Servers of the official Python SDK before version 2, which are common and answer in words of their own.
import { pythonPackages } from '../python-packages.mjs';

export const { missing, start } = pythonPackages('MCP_PYTHON_1', ['mcp==1.22.0']);
