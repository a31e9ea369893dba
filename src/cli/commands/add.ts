import { homedir } from 'node:os';
import { basename, dirname, relative, resolve } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { elementsOf, membersOf, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import { counted } from '../../core/render/counted.ts';
import { replaceFile } from '../../core/replace-file.ts';
import { readConfigFile } from '../../server/config/load.ts';
import { TARGET_NAME } from '../../server/mcp/backend-config.ts';
import { withTarget } from '../add/insert-target.ts';
import { type NewPins, newPins } from '../add/new-pins.ts';
import { sourceTarget } from '../add/source-target.ts';
import { lineOfTarget, onlyTarget, type TargetList, targetListOf } from '../add/target-list.ts';
import { addVariables } from '../add/variables-file.ts';
import { auditWrite } from '../audit/own-change.ts';
import type { Place } from '../clients/place.ts';
import { configFileOf } from '../config-file.ts';
import type { Context, Run } from '../context.ts';
import { variablesFile, withFileBeside } from '../env-file.ts';
import { openLines } from '../init/files.ts';
import type { Imported, ImportedEntry } from '../init/imported.ts';
import { askValues } from '../init/questions.ts';
import { type Variable, Variables } from '../init/variables.ts';

interface Options {
  readonly operands?: readonly string[];
  readonly from: string;
  readonly file?: string;
  readonly server?: string;
  readonly package?: string;
  readonly remote?: string | true;
  readonly yes?: boolean;
  /** False with `--no-start`. */
  readonly start?: boolean;
  readonly allowRisks?: boolean;
}

/** The name with `-` in place of what it may not have. */
function corrected(name: string): string {
  const like = name
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
  return /^[\w .+-]{1,64}$/.test(name) && TARGET_NAME.test(like) ? `, such as \`${like}\`` : '';
}

export const run: Run<Options> = async (options, given) => {
  const { operands: [name = ''] = [] } = options;
  if (!TARGET_NAME.test(name) || name.length > 253)
    throw new CommandError(
      'usage',
      `\`${escapeControls(name)}\` cannot be the name of a target`,
      `expected lower-case letters, digits, \`-\` and \`.\`${corrected(name)}`,
    );
  const file = configFileOf(options.file, given);
  if (file === '-')
    throw new CommandError('usage', 'standard input cannot be changed', 'name a file with -f');
  const context = withVariables(given, file);
  const place: Place = {
    platform: process.platform,
    home: context.env['HOME'] || homedir(),
    cwd: context.cwd,
    env: context.env,
  };
  const before = readConfigFile(resolve(context.cwd, file));
  const list = targetListOf(before, file);
  const line = lineOfTarget(list, name);
  if (line !== undefined)
    throw new CommandError(
      'not_ok',
      `${file}:${line}: there is a target named \`${name}\` already`,
      'choose another name, or remove that target first',
    );
  const variables = new Variables(context.env);
  variables.reserve(Array.from(before.matchAll(/\$\{?([A-Za-z_]\w*)/g), ([, each = '']) => each));
  const { package: wanted, remote } = options;
  const way = { name, server: options.server, wanted: { package: wanted, remote } };
  const { target, imported } = sourceTarget(options.from, way, place, variables);
  consentTo(target, options, context);
  const text = withTarget(target, list, file);
  const isAsked = !options.yes && process.stdin.isTTY === true && context.stdout.isTTY === true;
  if (isAsked) variables.fill(await askValues(awaitedOf(target, variables)));
  const missing = missingOf(target, variables);
  const awaited = awaitedOf(target, variables);
  const pins = await newPins(name, {
    ...{ text, file, variables, context, folder: dirname(resolve(context.cwd, file)), before },
    isStarted: options.start !== false && awaited.length === 0,
  });
  const envPath = variablesFile(given, file)?.path;
  write({ file: resolve(context.cwd, file), text, before, pins, missing, envPath });
  await auditWrite({ command: 'agctl add', file, before, after: text }, context);
  context.stdout.write(
    report({ name, file, target, imported, missing, awaited, envPath, pins, context, options, list }),
  );
  return EXIT_CODES.ok.code;
};

/**
 * Prints what a server would get of this machine. A gateway that runs reads the configuration again at once, so a server that is added
 * is as good as started.
 *
 * @throws CommandError with exit name `not_ok` unless the user has agreed
 */
function consentTo({ risks = [], value }: ImportedEntry, { allowRisks }: Options, { stderr }: Context): void {
  for (const risk of risks) stderr.write(`risk     ${escapeControls(risk)}\n`);
  if (risks.length > 0 && allowRisks !== true)
    throw new CommandError(
      'not_ok',
      `${value.name} is not added: whoever wrote its file chose ${risks.length === 1 ? 'this' : 'these'}`,
      'nothing was started or changed; --allow-risks adds it all the same',
    );
}

/** The context with the variables of the file beside the configuration, to which others are added. */
function withVariables(given: Context, file: string): Context {
  const { context, warning, note } = withFileBeside(given, file);
  // One that was not read cannot be added to.
  if (warning !== undefined && context.envFile === undefined) throw new CommandError('not_ok', warning);
  if (warning !== undefined) context.stderr.write(`warning: ${warning}\n`);
  if (note !== undefined) context.stderr.write(`note: ${note}\n`);
  return context;
}

const isReferred = (name: string, { value }: ImportedEntry): boolean => {
  const text = JSON.stringify(value);
  return (
    [`$\{${name}}`, `$\{${name}:-`].some((reference) => text.includes(reference)) ||
    new RegExp(`\\$${name}(?!\\w)`).test(text)
  );
};

/** Variables that a target refers to and the environment does not have. */
const missingOf = (target: ImportedEntry, variables: Variables): readonly Variable[] =>
  variables.missing.filter(({ name }) => isReferred(name, target));

/** Those without a value which the server needs, or may need. */
const awaitedOf = (target: ImportedEntry, variables: Variables): readonly Variable[] =>
  missingOf(target, variables).filter(
    ({ name, value, placeholder }) =>
      value === undefined && (placeholder !== '' || target.awaited?.includes(name) === true),
  );

interface Writing {
  readonly file: string;
  readonly text: string;
  readonly before: string;
  readonly pins: NewPins;
  readonly missing: readonly Variable[];
  readonly envPath: string | undefined;
}

/** Writes all files, the configuration last: until then, nothing refers to what the others have. */
function write({ file, text, before, pins, missing, envPath }: Writing): void {
  const others = (): boolean => {
    if (readConfigFile(file) !== before) return false;
    const undo =
      missing.length > 0 && envPath !== undefined ? addVariables(envPath, missing, file) : undefined;
    try {
      pins.write();
    } catch (error) {
      undo?.();
      throw new CommandError('not_ok', `${pins.file ?? ''} cannot be written: ${messageOf(error)}`);
    }
    return true;
  };
  let isWritten: boolean;
  try {
    isWritten = replaceFile(file, Buffer.from(text), others);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      'not_ok',
      `cannot write ${file}: ${messageOf(error)}`,
      'expected a file in a folder that this user can write to; nothing was changed',
    );
  }
  if (!isWritten) throw new CommandError('not_ok', `another program has just changed ${file}`, 'try again');
}

interface Outcome {
  readonly name: string;
  readonly file: string;
  readonly target: ImportedEntry;
  readonly imported: Imported;
  readonly missing: readonly Variable[];
  readonly awaited: readonly Variable[];
  readonly envPath: string | undefined;
  readonly pins: NewPins;
  readonly context: Context;
  readonly options: Options;
  readonly list: TargetList;
}

function report(outcome: Outcome): string {
  const { name, file, target, imported, missing, awaited, envPath, pins, context } = outcome;
  const agctl = context.invocation?.(context.cwd) ?? 'agctl';
  const shownEnv = envPath === undefined ? '' : relative(context.cwd, envPath) || basename(envPath);
  const renamed = renamedTools(outcome);
  const lines = [
    ...[...imported.notes, ...(renamed === undefined ? [] : [renamed])].map((note) => `note     ${note}`),
    ...imported.leftOut.map(({ what, reason }) => `left out ${what}: ${reason}`),
    ...[`added    ${name} to ${file}   ${summaryOf(target)}`],
  ];
  if (missing.length > 0) {
    lines.push(`added    ${missing.map(({ name: each }) => each).join(', ')} to ${shownEnv}`);
    const open = missing.filter(({ value }) => value === undefined);
    lines.push(...openLines(open).map((line) => `         ${line}`));
  }
  const { tools } = pins;
  if (tools !== undefined)
    lines.push(
      `pinned   ${counted(tools.length, 'tool')} in ${relative(context.cwd, pins.file ?? '')}${tools.length > 0 ? `: ${shortList(tools)}` : ''}`,
    );
  const flag = outcome.options.file === undefined ? '' : ` -f ${file}`;
  lines.push(
    '',
    'next',
    ...(awaited.length > 0
      ? [
          `  fill in ${awaited.map(({ name: each }) => each).join(', ')} in ${shownEnv}${awaited.some(({ placeholder }) => placeholder !== '') ? ': until then, a running gateway keeps the former configuration, and serve does not start' : ''}`,
        ]
      : []),
    ...(tools === undefined ? [`  ${agctl} check${flag} --only targets --start     tries it`] : []),
    ...(tools === undefined && pins.file !== undefined
      ? ['  its tools are pinned when the gateway lists them for the first time']
      : []),
    `  ${agctl} serve${flag}     a running gateway reads the file again`,
    '',
  );
  // Line by line: texts of the file write no lines of their own.
  return lines.map(escapeControls).join('\n');
}

/** That the tools of the only target so far get a prefix; undefined if they keep their names. */
function renamedTools({ name, list }: Outcome): string | undefined {
  const first = onlyTarget(list);
  if (first === undefined) return undefined;
  const others = ['toolSearch', 'bundles'].filter((key) => list.section.has(key));
  return `with two targets, tools of ${first} are named ${first}_…, and those of ${name} ${name}_…${others.length > 0 ? `, also in ${others.map((key) => `\`${key}\``).join(' and ')}` : ''}; \`prefixMode: never\` in the \`mcp\` section keeps the names, unless both have a tool of the same name`;
}

/** What is started, or where it is. */
function summaryOf({ value }: ImportedEntry): string {
  const { cmd, args, host } = membersOf(value['stdio'] ?? value['mcp'] ?? value['sse']);
  return typeof host === 'string' ? host : [textIn(cmd), ...elementsOf(args).map(textIn)].join(' ');
}

/** Tools that the report names. */
const MOST_TOOLS = 50;

function shortList(tools: readonly string[]): string {
  const more = tools.length - MOST_TOOLS;
  return tools.slice(0, MOST_TOOLS).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
