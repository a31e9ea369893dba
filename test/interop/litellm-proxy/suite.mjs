// LiteLLM's proxy as a provider, and beside a gateway with the same configuration; installed here from PyPI.
import { pythonPackages } from '../python-packages.mjs';

export const { missing, start } = pythonPackages('LITELLM_PROXY_PYTHON', ['litellm[proxy]==1.106.2']);
