import { type Diagnostic, type DiagnosticCode, inOrder } from '../../core/diagnostic.ts';
import { readNamedFile } from '../../core/named-file.ts';
import { checkSchema } from '../../core/schema/check.ts';
import { YamlSource } from '../../core/yaml/source.ts';
import { type Config, configSchema } from './schema.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A configuration file as read: its value when the schema accepts it, every problem found, and the way back to the text. */
export interface LoadedConfig {
  readonly config: Config | undefined;
  readonly diagnostics: readonly Diagnostic[];
  readonly source: YamlSource;
}

/** Problems that leave the rest of the tree as it was meant: a second key of one name, a variable that is not set. */
const LOCAL: readonly DiagnosticCode[] = ['AGW0002', 'AGW0004'];

/** Parses and checks the text of a configuration. Never throws. */
export function loadConfigText(text: string, file: string, env: Environment): LoadedConfig {
  const { source, diagnostics } = YamlSource.parse(text, file, env);
  if (!isWhole(diagnostics)) return { config: undefined, diagnostics, source };
  const checked = checkSchema(configSchema, source);
  const config = diagnostics.length > 0 ? undefined : checked.value;
  return { config, diagnostics: inOrder([...diagnostics, ...checked.diagnostics]), source };
}

/** Whether the tree is worth a further look. One with syntax errors would only give follow-up problems. */
export function isWhole(diagnostics: readonly Diagnostic[]): boolean {
  return !diagnostics.some(({ code }) => /^AGW00/.test(code) && !LOCAL.includes(code));
}

/** Reads a configuration file; `-` is standard input. Throws `CommandError` (usage) when it cannot be read. */
export const readConfigFile = (file: string): string =>
  readNamedFile(file, { hint: 'give the path of a configuration file' });
