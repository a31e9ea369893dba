import type { Command } from 'commander';
import type { Bind } from './context.ts';

const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** The commands of the first minutes: a configuration, and clients that use it. */
export function setupCommands(program: Command, run: Bind): void {
  program
    .command('init')
    .argument('[folder]', 'folder for the configuration (default: the working folder)')
    .description('create a configuration, from the MCP servers of your clients if you like')
    .option('-y, --yes', 'ask nothing: import what is found, and take the defaults')
    .option('--with <features>', 'what the gateway offers, separated by commas: mcp, llm, memory')
    .option(
      '--from <source>',
      'what to import: a client such as cursor, or a file; may be repeated (default: all clients)',
      collect,
    )
    .option('--port <port>', 'port of the gateway (default: the first free one from 3000)')
    .option('--no-secrets', 'do not copy secrets: write their names only')
    .addHelpText(
      'after',
      '\nReads the settings of Claude Code, Claude Desktop, Cursor, VS Code, Codex, Gemini CLI, Windsurf, Zed, Cline and LM Studio; with --from also any file with `mcpServers`, config.yaml of LiteLLM, and configurations of agentgateway in former forms.\n\nWrites gateway.yaml. Secrets of imported files become references such as $NAME; their values are written to gateway.env, which only its owner can read. Nothing is overwritten.\n\nExit code 0: created. 1: a file exists already, or could not be written.\n\nExamples:\n  agctl init\n  agctl init --yes --with mcp,llm\n  agctl init --yes --from cursor --from ./litellm.yaml\n',
    )
    .action(run(() => import('./commands/init.ts')));
}
