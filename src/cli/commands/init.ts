import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { membersOf, textIn } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import { counted } from '../../core/render/counted.ts';
import { convertConfig } from '../../server/config/convert/convert.ts';
import type { Place } from '../clients/place.ts';
import type { Context, Run } from '../context.ts';
import { composeConfig, needsDatabase } from '../init/compose.ts';
import { ENV_FILE, envFileText, newFiles, openLines, schemaPath, writeNew } from '../init/files.ts';
import { freePort } from '../init/free-port.ts';
import { type Imported, nothingImported } from '../init/imported.ts';
import { askFeatures, askSecrets, askSources } from '../init/questions.ts';
import { findSources, importSource, namedSources, type Source, shownPath } from '../init/sources.ts';
import {
  echoModel,
  FEATURES,
  type Feature,
  memoryTarget,
  starterModels,
  starterTarget,
} from '../init/starters.ts';
import { errorsOf, validConfig } from '../init/valid-config.ts';
import { type Variable, Variables } from '../init/variables.ts';
import { portNumber } from '../proxy/address.ts';

interface Options {
  readonly operands?: readonly string[];
  readonly from?: readonly string[];
  readonly with?: string;
  readonly port?: string;
  readonly yes?: boolean;
  /** False with `--no-secrets`. */
  readonly secrets?: boolean;
}

/** The default port of MCP endpoints. */
const FIRST_PORT = 3000;

export const run: Run<Options> = async (options, context) => {
  const place: Place = {
    platform: process.platform,
    home: context.env['HOME'] || homedir(),
    cwd: context.cwd,
    env: context.env,
  };
  const shown = (path: string): string => shownPath(path, place);
  const folder = resolve(context.cwd, options.operands?.[0] ?? '.');
  const isAsked = !options.yes && process.stdin.isTTY === true && context.stdout.isTTY === true;
  if (!isAsked && !options.yes)
    throw new CommandError(
      'usage',
      'init asks questions, and this is not a terminal',
      'agctl init --yes --with mcp,llm,memory',
    );
  const files = newFiles(folder, shown);
  const wanted = options.with === undefined ? undefined : featuresOf(options.with);
  const named = (options.from ?? []).flatMap((name) => namedSources(name, place));
  const features = wanted ?? (named.length > 0 || !isAsked ? undefined : await askFeatures());
  const sources = await chosenSources(named, features, isAsked, place);
  const variables = new Variables(context.env);
  const imported = nothingImported();
  const whole = sources.flatMap(({ content, shown: source }) =>
    'gateway' in content ? [{ ...content, source }] : [],
  );
  if (whole.length > 0 && (sources.length > 1 || features !== undefined))
    throw new CommandError(
      'usage',
      `${whole[0]?.source} is a whole configuration`,
      'import it alone: --from once, without --with',
    );
  const text =
    whole[0] === undefined
      ? await composed(
          {
            features,
            sources,
            isNamed: named.length > 0,
            place,
            variables,
            imported,
            folder,
            file: files.config,
            port: options.port,
          },
          context,
        )
      : await converted(whole[0].gateway, whole[0].source, folder, context, imported);
  // What was left out needs no key.
  const missing = variables.missing.filter(({ name }) =>
    [`$\{${name}}`, `$\{${name}:-`, `$${name}`].some((reference) => text.includes(reference)),
  );
  const secrets = missing.filter(({ value }) => value !== undefined);
  const withValues =
    options.secrets !== false && (!isAsked || secrets.length === 0 || (await askSecrets(ENV_FILE, secrets)));
  writeNew(files.config, text, folder);
  if (missing.length > 0) writeNew(files.env, envFileText(missing, withValues), folder, true);
  context.stdout.write(
    report({
      ...{ files, imported, missing, withValues, shown, folder, cwd: context.cwd },
      agctl: context.invocation?.(folder) ?? 'agctl',
      hasDatabaseComment: whole.length === 0 && !needsDatabase(imported),
    }),
  );
  return EXIT_CODES.ok.code;
};

function featuresOf(list: string): readonly Feature[] {
  const names = list.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !FEATURES.some((feature) => feature === name));
  if (unknown !== undefined)
    throw new CommandError(
      'usage',
      `--with: unknown feature \`${escapeControls(unknown)}\``,
      `features: ${FEATURES.join(', ')}`,
    );
  return FEATURES.filter((feature) => names.includes(feature));
}

async function chosenSources(
  named: readonly Source[],
  features: readonly Feature[] | undefined,
  isAsked: boolean,
  place: Place,
): Promise<readonly Source[]> {
  if (named.length > 0) return named;
  if (features !== undefined && !features.includes('mcp')) return [];
  const found = findSources(place);
  return isAsked ? askSources(found) : found;
}

interface Plan {
  /** Undefined: whatever is imported, or MCP if that is nothing. */
  readonly features: readonly Feature[] | undefined;
  readonly sources: readonly Source[];
  /** Whether the user has named the sources. */
  readonly isNamed: boolean;
  readonly place: Place;
  readonly variables: Variables;
  readonly imported: Imported;
  readonly folder: string;
  readonly file: string;
  readonly port: string | undefined;
}

async function composed(plan: Plan, context: Context): Promise<string> {
  const { sources, place, variables, imported, folder, file } = plan;
  const port = plan.port === undefined ? await freePort(FIRST_PORT) : portNumber(plan.port);
  if (port === undefined) throw new CommandError('usage', '--port must be a number from 1 to 65535');
  // Registries last: names of variables that others need are taken then.
  const ordered = sources.toSorted(
    (a, b) => Number('registry' in a.content) - Number('registry' in b.content),
  );
  for (const source of ordered) importSource(source, place, variables, imported);
  leaveOutItself(imported, port);
  const isEmpty = imported.targets.length === 0 && imported.models.length === 0;
  const [lost] = imported.leftOut;
  if (isEmpty && plan.isNamed && plan.features === undefined && lost !== undefined)
    throw new CommandError(
      'not_ok',
      `nothing could be imported: ${escapeControls(lost.what)}: ${escapeControls(lost.reason)}`,
      'agctl init --yes --with llm writes a configuration to start from',
    );
  const features = plan.features ?? (isEmpty ? ['mcp'] : []);
  if (features.includes('mcp') && imported.targets.length === 0) imported.targets.push(starterTarget);
  if (features.includes('memory')) imported.targets.push(memoryTarget(context));
  if (features.includes('llm') && imported.models.length === 0) {
    const models = starterModels(context);
    imported.models.push(...(models.length > 0 ? models : [echoModel]));
  }
  const compose = (): string =>
    composeConfig({
      imported,
      port,
      schema: schemaPath(folder),
      agctl: context.invocation?.(folder) ?? 'agctl',
      isEcho: imported.models.includes(echoModel),
    });
  const surroundings = { file, folder, env: variables.environment };
  const { text, errors, warnings } = await validConfig(imported, compose, surroundings);
  for (const { message, help } of warnings)
    imported.notes.push(`warning: ${message}${help === undefined ? '' : ` (${help})`}`);
  const [error] = errors;
  if (error !== undefined)
    throw new CommandError('not_ok', `the result would not be valid: ${error.message}`, error.help);
  return text;
}

/** A client that is connected to the gateway already would make it a server of its own. */
function leaveOutItself(imported: Imported, port: number): void {
  const own = new RegExp(`^http://(?:127\\.0\\.0\\.1|localhost|\\[::1\\]):${port}/`);
  for (const [index, { value, source }] of [...imported.targets.entries()].reverse()) {
    const { host } = membersOf(value['mcp'] ?? value['sse']);
    if (!own.test(textIn(host))) continue;
    imported.targets.splice(index, 1);
    imported.leftOut.push({ what: `${value.name} in ${source}`, reason: 'it is this gateway' });
  }
}

/** A configuration of a gateway, with its former keys in their current form. */
async function converted(
  text: string,
  source: string,
  folder: string,
  { env }: Context,
  imported: Imported,
): Promise<string> {
  const { text: result } = convertConfig(text);
  for (const { message, help } of await errorsOf(result, { file: source, folder, env }))
    imported.leftOut.push({
      what: `to correct by hand, from ${source}`,
      reason: help === undefined ? message : `${message} (${help})`,
    });
  return result;
}

interface Outcome {
  readonly files: { readonly config: string; readonly env: string };
  readonly imported: Imported;
  /** Variables that the configuration refers to and the environment does not have. */
  readonly missing: readonly Variable[];
  readonly withValues: boolean;
  readonly shown: (path: string) => string;
  readonly folder: string;
  readonly cwd: string;
  /** How the user calls this program. */
  readonly agctl: string;
  readonly hasDatabaseComment: boolean;
}

function report(outcome: Outcome): string {
  const { files, imported, missing, withValues, shown, folder, cwd, agctl, hasDatabaseComment } = outcome;
  const { targets, models, leftOut, notes } = imported;
  const names = targets.map(({ value }) => value.name).join(', ');
  const contents = [
    ...(targets.length > 0 ? [`${counted(targets.length, 'MCP server')}: ${names}`] : []),
    ...(models.length > 0 ? [counted(models.length, 'model')] : []),
  ];
  const lines = [`created  ${shown(files.config)}${contents.length > 0 ? `   ${contents.join('; ')}` : ''}`];
  if (targets.includes(starterTarget))
    lines.push(`         everything is a sample server; import those of a client: ${agctl} init --from FILE`);
  if (missing.length > 0) {
    lines.push(
      `created  ${shown(files.env)}   ${missing.map(({ name }) => name).join(', ')}; only you can read it`,
    );
    const open = missing.filter(({ value }) => value === undefined || !withValues);
    lines.push(...openLines(open).map((line) => `         ${line}`));
  }
  if (notes.length > 0) lines.push(...['', 'notes'], ...notes.map((note) => `  ${note}`));
  const risks = targets.flatMap(({ value, risks: each = [] }) =>
    each.map((risk) => `  ${value.name}: ${risk}`),
  );
  if (risks.length > 0) lines.push(...['', 'read before you start them'], ...risks);
  if (leftOut.length > 0)
    lines.push(
      ...['', 'not imported'],
      ...leftOut
        .toSorted((a, b) => Number(b.isWarning ?? false) - Number(a.isWarning ?? false))
        .map(({ what, reason, isWarning }) => `  ${isWarning ? 'warning: ' : ''}${what}: ${reason}`),
    );
  lines.push(
    '',
    'next',
    ...(folder === cwd ? [] : [`  cd ${shown(folder)}`]),
    `  ${agctl} serve`,
    `  ${agctl} connect claude${targets.length > 0 ? '' : ' --llm'}     or another client: ${agctl} connect --help`,
    ...(targets.length > 0 && models.length > 0 ? [`  ${agctl} connect claude --llm   for the models`] : []),
    ...(hasDatabaseComment
      ? ['', `usage, keys and Conversations need a database: see the end of ${shown(files.config)}`]
      : []),
    '',
  );
  // Line by line: names of servers come from files, and write no lines of their own.
  return lines.map(escapeControls).join('\n');
}
