// LiteLLM, whose translations are compared with those of the gateway; installed here from PyPI.
import { pythonPackages } from '../python-packages.mjs';

// The Responses API of LiteLLM imports mcp.
export const { missing, start } = pythonPackages('LITELLM_PYTHON', ['litellm==1.106.2', 'mcp==2.3.0']);
