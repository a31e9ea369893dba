import { basename, sep } from 'node:path';
import { NotImported } from './imported.ts';
import { literalText } from './values.ts';
import { type Variables, variableName } from './variables.ts';

/** What placeholders of a file stand for. */
export interface PlaceholderContext {
  readonly home: string;
  /** The folder of the project that the file belongs to; undefined for a user's settings. */
  readonly workspace: string | undefined;
  /** Whether `$NAME` is a reference in this file. */
  readonly expandsBareNames: boolean;
  readonly variables: Variables;
  /** The file, for people. */
  readonly source: string;
}

/** The value of a variable with an address until it is filled in: another text would be no URL. */
export const UNKNOWN_URL = 'https://change-me.invalid';

const REFERENCE = /\$\{([^{}]*)\}|\$([A-Za-z_]\w*)|\$/g;

/** Whether a text refers to a variable. */
export const hasReference = (text: string): boolean => /\$(?:\{|[A-Za-z_])/.test(text);

/**
 * Rewrites the references of a client's settings as those of a configuration: `${env:NAME}` becomes `${NAME}`, an input
 * of VS Code becomes a variable, and folders are filled in. Any other dollar sign is kept as it is by doubling it.
 *
 * @throws NotImported for a reference that has no counterpart
 */
export function withReferences(text: string, context: PlaceholderContext): string {
  return text.replaceAll(REFERENCE, (whole, braced?: string, bare?: string) => {
    if (braced !== undefined) return reference(braced, whole, context);
    if (bare === undefined) return '$$';
    if (!context.expandsBareNames) return `$$${bare}`;
    return needed(bare, whole, context);
  });
}

function reference(inner: string, whole: string, context: PlaceholderContext): string {
  const { home, workspace, source } = context;
  const folder = (value: (path: string) => string): string => {
    if (workspace === undefined) throw new NotImported(`${whole} is known to the editor alone`);
    return literalText(value(workspace));
  };
  const [, environment] = /^env:([A-Za-z_]\w*)$/.exec(inner) ?? [];
  if (environment !== undefined) return needed(environment, `\${${environment}}`, context);
  const [, input] = /^input:(.+)$/.exec(inner) ?? [];
  if (input !== undefined) {
    const name = variableName(input);
    context.variables.need(name, `the input \`${input}\` of ${source}`);
    return `\${${name}}`;
  }
  const [, name, fallback] = /^([A-Za-z_]\w*)(:-.*)?$/s.exec(inner) ?? [];
  if (inner === 'workspaceFolder') return folder((path) => path);
  if (inner === 'workspaceFolderBasename') return folder((path) => basename(path));
  if (inner === 'userHome') return literalText(home);
  if (inner === 'pathSeparator' || inner === '/') return sep;
  if (name === undefined) throw new NotImported(`${whole} has no counterpart in a configuration`);
  return fallback === undefined ? needed(name, whole, context) : whole;
}

function needed(name: string, written: string, { variables, source }: PlaceholderContext): string {
  variables.need(name, source);
  return written;
}
