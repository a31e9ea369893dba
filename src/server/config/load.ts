import { type Diagnostic, type DiagnosticCode, inOrder, type Path } from '../../core/diagnostic.ts';
import { readNamedFile } from '../../core/named-file.ts';
import { YamlSource } from '../../core/yaml/source.ts';
import { checkSchema } from './reading/check.ts';
import { fileOfAnotherProgram } from './reading/file-of-another-program.ts';
import { type Config, configSchema } from './schema.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** A parsed configuration file: its value if the schema accepts it, all problems found, and the source. */
export interface LoadedConfig {
  readonly config: Config | undefined;
  readonly diagnostics: readonly Diagnostic[];
  readonly source: YamlSource;
}

/** Problems that do not affect the rest of the tree: a duplicate key, a variable that is not set. */
const LOCAL: readonly DiagnosticCode[] = ['AGW0002', 'AGW0004'];

/** Parses and validates the text of a configuration. Never throws. */
export function loadConfigText(text: string, file: string, env: Environment): LoadedConfig {
  const { source, diagnostics } = YamlSource.parse(text, file, env);
  const other = fileOfAnotherProgram(source);
  if (other !== undefined) return { config: undefined, diagnostics: [other], source };
  if (!isWhole(diagnostics)) return { config: undefined, diagnostics, source };
  const checked = checkSchema(configSchema, source);
  const config = diagnostics.length > 0 ? undefined : checked.value;
  const empty = emptyPolicies(checked.absent, source);
  return { config, diagnostics: inOrder([...diagnostics, ...checked.diagnostics, ...empty]), source };
}

/** Warnings for empty policies, which may be mistaken for protection. */
function emptyPolicies(absent: readonly Path[], source: YamlSource): Diagnostic[] {
  return absent
    .filter((path) => path.at(-2) === 'policies')
    .map((path) => ({
      severity: 'warning',
      code: 'AGW0303',
      file: source.file,
      path,
      range: source.keyRange(path),
      message: `\`${path.at(-1)}\` is empty and has no effect`,
      label: 'an empty value counts as absent',
      help: 'set its fields, or delete the key; `{}` applies its defaults, if it has any',
    }));
}

/** Whether the tree is complete. After syntax errors, further checks would only find follow-up problems. */
export function isWhole(diagnostics: readonly Diagnostic[]): boolean {
  return !diagnostics.some(({ code }) => /^AGW00/.test(code) && !LOCAL.includes(code));
}

/** Reads a configuration file; `-` is standard input. Throws `CommandError` (usage) if it cannot be read. */
export const readConfigFile = (file: string): string =>
  readNamedFile(file, { hint: 'specify the path of a configuration file' });
