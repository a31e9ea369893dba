import type { Context } from '../context.ts';
import { startCommand } from '../invocation.ts';
import type { ImportedEntry } from './imported.ts';

/** What `--with` takes. */
export const FEATURES = ['mcp', 'llm', 'memory'] as const;
export type Feature = (typeof FEATURES)[number];

/** A real MCP server with a tool for everything, for a gateway without one. */
export const starterTarget: ImportedEntry = {
  source: '',
  value: {
    name: 'everything',
    stdio: { cmd: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'], warm: 1 },
  },
};

/** The memory of this program. One process for all sessions, because one process owns the files of a memory. */
export function memoryTarget({ env, cwd }: Pick<Context, 'env' | 'cwd'>): ImportedEntry {
  const [cmd, ...first] = startCommand({ env, cwd });
  const args = [...first, 'memory-adapter', 'stdio', '--embedded', '--data', 'memory'];
  return { source: '', value: { name: 'memory', stdio: { cmd, args, shared: true } } };
}

/** Providers whose key is in the environment. */
const PROVIDERS = [
  { variable: 'OPENAI_API_KEY', name: 'gpt-*', provider: 'oaiCompat' },
  { variable: 'ANTHROPIC_API_KEY', name: 'claude-*', provider: 'anthropic' },
  { variable: 'GEMINI_API_KEY', name: 'gemini-*', provider: 'gemini' },
] as const;

/** Models of the providers whose key is in the environment. */
export function starterModels({ env }: Pick<Context, 'env'>): readonly ImportedEntry[] {
  return PROVIDERS.filter(({ variable }) => (env[variable] ?? '') !== '').map(
    ({ variable, name, provider }) => ({
      source: '',
      value: { name, provider, params: { apiKey: `$\{${variable}}` } },
    }),
  );
}

export const echoModel: ImportedEntry = { source: '', value: { name: '*', provider: 'echo' } };
