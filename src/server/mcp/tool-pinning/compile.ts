import { resolve } from 'node:path';
import { z } from 'zod';
import { messageOf } from '../../../core/errors.ts';
import { nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { PinFile } from './pin-file.ts';
import { ToolPins } from './tool-pins.ts';

const mode = z.enum(['off', 'warn', 'enforce']);
const DEFAULT_FILE = 'tools.lock.yaml';

/** `toolPinning` of the MCP backend: a mode, or a mode and a file. */
export const toolPinningSchema = z
  .union([
    mode,
    z.strictObject({
      mode: mode.describe('What happens to a tool that has changed.'),
      file: nonEmpty
        .default(DEFAULT_FILE)
        .describe(
          'File of the pins, relative to the folder of the configuration. Created with its folder if it is missing.',
        ),
    }),
  ])
  .default('off')
  .describe(
    'Pins each tool when it is listed for the first time: title, description, schemas and annotations. `warn`: a later change is logged and counted. `enforce`: the tool is also hidden and calls to it are refused, until its entry is deleted from the file of the pins.',
  );

type Pinning = z.output<typeof toolPinningSchema>;

/** Mode and file, relative to the folder of the configuration. */
export const pinSettings = (config: Pinning): Exclude<Pinning, string> =>
  typeof config === 'string' ? { mode: config, file: DEFAULT_FILE } : config;

/** Compiles `toolPinning` and reads its file, with a problem if that fails. Returns the pins of a target. */
export function compileToolPinning(
  config: Pinning,
  context: CompileContext,
): (target: { readonly name: string; clean?(text: string): string }) => ToolPins | undefined {
  const settings = pinSettings(config);
  if (settings.mode === 'off') return () => undefined;
  const { log, folder } = context;
  const { limits, counter } = context.settings;
  const file = new PinFile(resolve(folder, settings.file), log);
  try {
    file.load();
  } catch (error) {
    (typeof config === 'string' ? context : context.at('file')).report({
      code: 'AGW0005',
      message: `the file of tool pins cannot be read: ${settings.file}`,
      label: messageOf(error),
      help: 'repair the file, or delete it to pin all tools again',
    });
  }
  const counted = counter('mcpToolChanges');
  return ({ name, clean }) =>
    new ToolPins({
      target: name,
      file,
      isEnforced: settings.mode === 'enforce',
      log,
      limits,
      changed: () => counted([name]),
      clean: (text) => clean?.(text) ?? text,
    });
}
