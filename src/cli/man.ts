import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { editorSchema } from '../server/config/editor-schema.ts';
import { configJsonSchema } from '../server/config/json-schema.ts';
import { commandNodes, commandPage, pageName } from './man/command-page.ts';
import { configPage } from './man/config-page.ts';
import { errorsPage } from './man/errors-page.ts';
import { expressionsPage } from './man/expressions-page.ts';
import { createProgram } from './program.ts';

/**
 * The generated reference: maps each file name in `man/` to its text. One page per command from the command tree, the
 * configuration from its schema, errors from their tables. The output is deterministic.
 */
export function referenceFiles(): ReadonlyMap<string, string> {
  const help = new TextSink();
  // A page must not depend on the machine that generates it, hence no terminal and no environment.
  const program = createProgram({ stdout: help, stderr: help, env: {}, cwd: '/' }, () => undefined);
  const commands = commandNodes(program).map(
    (node) => [`${pageName(node.words)}.1`, commandPage(node, textAfterHelp(node.command, help))] as const,
  );
  const schema = configJsonSchema();
  return new Map<string, string>([
    ...commands,
    ['agctl-config.5', configPage(schema)],
    ['agctl-errors.7', errorsPage()],
    ['agctl-expressions.7', expressionsPage()],
    ['config.schema.json', `${JSON.stringify(editorSchema(), null, 2)}\n`],
  ]);
}

/** Commander exposes added help text only by printing it, after the help that it generates itself. */
function textAfterHelp(command: Command, help: TextSink): string {
  help.text = '';
  command.outputHelp();
  return help.text.slice(command.helpInformation().length);
}

class TextSink extends Writable {
  text = '';

  override write(chunk: unknown): boolean {
    this.text += String(chunk);
    return true;
  }
}
