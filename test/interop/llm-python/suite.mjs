// Python clients of LLM APIs, which are installed here from PyPI.
import { pythonPackages } from '../python-packages.mjs';

export const { missing, start } = pythonPackages('LLM_PYTHON', [
  'openai==3.54.0',
  'anthropic==2.12.0',
  'google-genai==3.4.0',
  'langchain-core==1.7.2',
  'langchain-openai==1.7.3',
  'langchain-anthropic==1.7.7',
]);
