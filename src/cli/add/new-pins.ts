import { messageOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { membersOf } from '../../core/foreign.ts';
import { loadConfigText } from '../../server/config/load.ts';
import { planGateways } from '../../server/config/plan/plan-gateways.ts';
import type { TargetPins } from '../../server/kernel/probe.ts';
import { detailOf } from '../../server/mcp/connection/target-failure.ts';
import { probesOf } from '../check/probes.ts';
import { killChildrenOnSignals, targetContext } from '../check/target-context.ts';
import type { Context } from '../context.ts';
import { errorsOf } from '../init/valid-config.ts';
import { UNKNOWN_VALUE, type Variables } from '../init/variables.ts';
import { Progress } from '../progress.ts';

interface Added {
  /** The configuration with the new target. */
  readonly text: string;
  readonly before: string;
  readonly file: string;
  readonly folder: string;
  readonly variables: Variables;
  readonly context: Context;
  /** Whether the server is started, if its tools are pinned. */
  readonly isStarted: boolean;
}

/** Pins of a new target. */
export interface NewPins {
  /** The file; undefined without `toolPinning`. */
  readonly file?: string;
  /** Tools that are pinned; undefined if the server was not started. */
  readonly tools?: readonly string[];
  write(): void;
}

/**
 * Checks a configuration with a new target and, with `toolPinning`, starts the server once to find out what to pin. Writes
 * nothing.
 *
 * @throws CommandError with exit name `not_ok` if the configuration is not valid, or the server does not start
 */
export async function newPins(name: string, added: Added): Promise<NewPins> {
  const { text, file, folder, variables, isStarted } = added;
  const env = withPlaceholders(text, variables.environment);
  const [error] = await errorsOf(text, { file, folder, env });
  if (error !== undefined) {
    const isOld = (await errorsOf(added.before, { file, folder, env })).some(
      ({ message }) => message === error.message,
    );
    throw new CommandError(
      'not_ok',
      isOld
        ? `${file}:${error.range.start.line}: ${error.message}`
        : `the configuration would not be valid: ${error.message}`,
      isOld ? 'correct the configuration first: agctl config validate' : error.help,
    );
  }
  const { config, source } = loadConfigText(text, file, env);
  const probe =
    config === undefined
      ? undefined
      : probesOf({ gateways: planGateways(config).gateways }).find(({ probe: each }) => each.name === name)
          ?.probe;
  if (config === undefined || probe === undefined || probe.kind === 'models')
    return { write: () => undefined };
  await using at = targetContext({ config, source, env, folder });
  const pins = pinsOf(() => probe.pins(at.context));
  if (pins === undefined) return { write: () => undefined };
  if (pins.known > 0)
    throw new CommandError(
      'not_ok',
      `${pins.path} has pins of a former target \`${name}\``,
      `delete \`${name}\` below \`targets\` in it, or choose another name`,
    );
  if (!isStarted) return { file: pins.path, write: () => undefined };
  if (probe.kind === 'command' && probe.locate(env, folder).path === undefined)
    throw new CommandError(
      'not_ok',
      `command not found: ${probe.command}`,
      'install it, choose another way with --package or --remote, or add the server without pinning its tools: --no-start',
    );
  const { names, write } = await listed(name, pins, added.context);
  return { file: pins.path, tools: names, write };
}

function pinsOf(read: () => TargetPins | undefined): TargetPins | undefined {
  try {
    return read();
  } catch (error) {
    throw new CommandError(
      'not_ok',
      `the file of tool pins cannot be read: ${messageOf(error)}`,
      'repair the file, or delete it to pin all tools again',
    );
  }
}

async function listed(name: string, pins: TargetPins, context: Context): ReturnType<TargetPins['list']> {
  killChildrenOnSignals();
  const progress = new Progress(context);
  progress.show(`starting ${name} to list its tools`);
  try {
    return await pins.list();
  } catch (error) {
    throw new CommandError(
      'not_ok',
      `${name} cannot list its tools: ${detailOf(error)}`,
      'nothing was changed; --no-start adds the server without pinning its tools',
    );
  } finally {
    progress.clear();
  }
}

/** A value for every variable that is not set: whether it is set is not a question of this command. */
function withPlaceholders(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const names = Array.from(text.matchAll(/\$\{?([A-Za-z_]\w*)/g), ([, name = '']) => name);
  const unset = names.filter((name) => typeof membersOf(env)[name] !== 'string');
  return { ...env, ...Object.fromEntries(unset.map((name) => [name, UNKNOWN_VALUE])) };
}
