import { confirm, isCancel, multiselect, password, text } from '@clack/prompts';
import { CommandError } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { counted } from '../../core/render/counted.ts';
import { countOf, type Source } from './sources.ts';
import { FEATURES, type Feature } from './starters.ts';
import { isSecretName, type Variable } from './variables.ts';

const LABELS: Readonly<Record<Feature, { label: string; hint: string }>> = {
  mcp: { label: 'MCP servers', hint: 'one endpoint in front of local and remote servers' },
  llm: { label: 'LLM providers', hint: 'one endpoint for the OpenAI, Anthropic and Gemini APIs' },
  memory: { label: 'Memory', hint: 'long-term memory as an MCP server, in ./memory' },
};

/** Asks what the gateway is for. */
export async function askFeatures(): Promise<readonly Feature[]> {
  return answered(
    await multiselect({
      message: 'What should this gateway offer?  (space selects, enter continues)',
      options: FEATURES.map((value) => ({ value, ...LABELS[value] })),
      initialValues: FEATURES.filter((feature) => feature === 'mcp'),
      required: true,
    }),
  );
}

/** Asks which of the files that were found to import. */
export async function askSources(sources: readonly Source[]): Promise<readonly Source[]> {
  if (sources.length === 0) return [];
  const paths = answered(
    await multiselect({
      message: 'Import the MCP servers of these clients?',
      options: sources.map((source) => ({
        value: source.path,
        label: source.client?.title ?? source.shown,
        hint: `${counted(countOf(source), 'server')} in ${source.shown}`,
      })),
      initialValues: sources.map(({ path }) => path),
      required: false,
    }),
  );
  return sources.filter(({ path }) => paths.includes(path));
}

/** Asks whether secrets may be copied. */
export async function askSecrets(file: string, variables: readonly Variable[]): Promise<boolean> {
  const names = variables.map(({ name }) => name).join(', ');
  return answered(
    await confirm({
      message: `Copy the values of ${names} to ${file}, which only you can read?`,
      initialValue: true,
    }),
  );
}

/** Asks for the values of variables. An empty answer leaves one without a value. */
export async function askValues(variables: readonly Variable[]): Promise<ReadonlyMap<string, string>> {
  const values = new Map<string, string>();
  for (const { name, from } of variables) {
    const message = `${name}   ${escapeControls(from)}   (empty: later)`;
    const value = answered(await (isSecretName(name) ? password({ message }) : text({ message })));
    // An empty answer is undefined in some versions.
    if (value) values.set(name, value);
  }
  return values;
}

/** @throws CommandError with exit name `interrupted` after Ctrl-C or Escape */
function answered<T>(answer: T): Exclude<T, symbol> {
  if (isCancel(answer)) throw new CommandError('interrupted', 'nothing was written');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the symbol means that the user has cancelled
  return answer as Exclude<T, symbol>;
}
