import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { promisify } from 'node:util';

// Coding agents as their users start them for one task, with the settings that our documentation names.

export interface Task {
  /** The home directory: settings and sessions of the agent. */
  readonly home: string;
  /** The folder that the agent works in. */
  readonly folder: string;
  /** Origin of the gateway. */
  readonly url: string;
  readonly model: string;
  readonly prompt: string;
}

export type Agent = (task: Task) => Promise<{ code: number; output: string }>;

/** The key of the agents at the gateway. */
export const KEY = 'sk-agent';

export const claudeCode: Agent = ({ home, folder, url, model, prompt }) =>
  run('@anthropic-ai/claude-code/cli-wrapper.cjs', folder, {
    args: ['--print', prompt, '--allowedTools', 'Bash', 'Read', '--output-format', 'json'],
    env: {
      HOME: home,
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: KEY,
      ANTHROPIC_MODEL: model,
      // Nothing leaves this machine: no updates, reports or telemetry.
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // One retry, and soon.
      CLAUDE_CODE_MAX_RETRIES: '1',
    },
  });

export const codex: Agent = ({ home, folder, url, model, prompt }) => {
  mkdirSync(join(home, '.codex'), { recursive: true });
  const settings = [
    `model = "${model}"`,
    'model_provider = "gateway"',
    'web_search = "disabled"',
    '[model_providers.gateway]',
    'name = "gateway"',
    `base_url = "${url}/v1"`,
    'wire_api = "responses"',
    'env_key = "AGCTL_KEY"',
    'request_max_retries = 1',
    'stream_max_retries = 1',
    '[analytics]',
    'enabled = false',
  ];
  writeFileSync(join(home, '.codex/config.toml'), settings.join('\n'));
  // Its sandbox needs rights that containers do not have.
  const sandbox = ['--sandbox', 'danger-full-access'];
  return run('@openai/codex/bin/codex.js', folder, {
    args: ['exec', '--json', '--skip-git-repo-check', ...sandbox, prompt],
    env: { HOME: home, AGCTL_KEY: KEY },
  });
};

export const geminiCli: Agent = ({ home, folder, url, model, prompt }) => {
  mkdirSync(join(home, '.gemini'), { recursive: true });
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
    privacy: { usageStatisticsEnabled: false },
    general: { disableAutoUpdate: true, enableAutoUpdate: false },
    telemetry: { enabled: false },
  };
  writeFileSync(join(home, '.gemini/settings.json'), JSON.stringify(settings));
  return run('@google/gemini-cli/bundle/gemini.js', folder, {
    args: ['--prompt', prompt, '--model', model, '--approval-mode', 'yolo', '--output-format', 'json'],
    env: {
      HOME: home,
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: KEY,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      // It would start itself again with more memory.
      GEMINI_CLI_NO_RELAUNCH: 'true',
    },
  });
};

/** Runs a program with these variables only: an agent on the machine of a developer finds no account of theirs. */
async function run(
  program: string,
  cwd: string,
  { args, env: variables }: { args: readonly string[]; env: Readonly<Record<string, string>> },
): Promise<{ code: number; output: string }> {
  const file = join(env['CODING_AGENTS'] as string, 'node_modules', program);
  const running = promisify(execFile)(process.execPath, [file, ...args], {
    cwd,
    timeout: 240_000,
    env: { PATH: env['PATH'] ?? '', ...variables },
  });
  running.child.stdin?.end();
  return running.then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({
      code,
      output: stdout + stderr,
    }),
  );
}
