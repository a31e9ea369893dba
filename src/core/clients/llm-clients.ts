import { byHand, type ClientSettings, shellWord } from './client.ts';

/** For clients that insist on a key, whatever the gateway does with it. */
const NO_KEY = 'not-needed';

/** Lines that set variables of a shell, and the program that reads them. */
function exported(variables: Readonly<Record<string, string>>, program: string): string {
  return [...Object.entries(variables).map(([name, value]) => `export ${name}=${value}`), program].join('\n');
}

/**
 * Every client whose models `connect --llm` points at the gateway, and that the Connect page shows. Sources: Claude Code,
 * "LLM gateway configuration" and "Settings"; Codex, "Config reference"; Gemini CLI, "Environment variables" and pull
 * request 25357, which made it follow GOOGLE_GEMINI_BASE_URL.
 */
export const llmClients: readonly ClientSettings[] = [
  {
    key: 'claude',
    title: 'Claude Code',
    family: /claude/i,
    files: [{ root: 'home', path: '.claude/settings.json' }],
    format: 'json',
    members: ({ url, keyVariable, model }) => [
      { path: ['env', 'ANTHROPIC_BASE_URL'], value: url },
      {
        path: ['env', 'ANTHROPIC_AUTH_TOKEN'],
        value: keyVariable === undefined ? NO_KEY : byHand(keyVariable),
      },
      ...(model === undefined ? [] : [{ path: ['env', 'ANTHROPIC_MODEL'] as const, value: model }]),
    ],
    command: ({ url, keyVariable, model }) =>
      exported(
        {
          ANTHROPIC_BASE_URL: shellWord(url),
          ANTHROPIC_AUTH_TOKEN: keyVariable === undefined ? NO_KEY : `"$${keyVariable}"`,
          ...(model === undefined ? {} : { ANTHROPIC_MODEL: shellWord(model) }),
        },
        'claude',
      ),
    keyHint: (name) => `replace <${name}> with the key`,
  },
  {
    key: 'codex',
    title: 'Codex',
    family: /gpt|codex/i,
    files: [{ root: 'codex', path: 'config.toml' }],
    format: 'toml',
    members: ({ url, keyVariable, model }, name) => [
      ...(model === undefined ? [] : [{ path: ['model'] as const, value: model }]),
      { path: ['model_provider'], value: name },
      // Only providers with the Responses API have the search that Codex declares: others refuse it as untranslatable.
      { path: ['web_search'], value: 'disabled' },
      {
        path: ['model_providers', name],
        value: {
          name,
          base_url: `${url}/v1`,
          wire_api: 'responses',
          ...(keyVariable === undefined ? {} : { env_key: keyVariable }),
        },
      },
    ],
  },
  {
    key: 'gemini',
    title: 'Gemini CLI',
    family: /gemini/i,
    files: [{ root: 'home', path: '.gemini/.env' }],
    format: 'env',
    members: ({ url, keyVariable, model }) => [
      { path: ['GOOGLE_GEMINI_BASE_URL'], value: url },
      { path: ['GEMINI_API_KEY'], value: keyVariable === undefined ? NO_KEY : byHand(keyVariable) },
      ...(model === undefined ? [] : [{ path: ['GEMINI_MODEL'] as const, value: model }]),
    ],
    command: ({ url, keyVariable, model }) =>
      exported(
        {
          GOOGLE_GEMINI_BASE_URL: shellWord(url),
          GEMINI_API_KEY: keyVariable === undefined ? NO_KEY : `"$${keyVariable}"`,
          ...(model === undefined ? {} : { GEMINI_MODEL: shellWord(model) }),
        },
        'gemini',
      ),
    keyHint: (name) => `replace <${name}> with the key`,
  },
];
