import type { PlaceholderContext } from '../placeholders.ts';
import { variableName } from '../variables.ts';

/** `os.environ/NAME` is LiteLLM's reference to a variable. */
const OS_ENVIRON = /^os\.environ\/([A-Za-z_]\w*)$/;

/** The name of the variable that a text refers to; undefined for any other text. */
export const variableIn = (text: string): string | undefined => OS_ENVIRON.exec(text)?.[1];

/** The names of all variables that a file refers to. */
export const referencesIn = (file: unknown): string[] =>
  [...JSON.stringify(file).matchAll(/"os\.environ\/([A-Za-z_]\w*)"/g)].map(([, name]) => name ?? '');

export function withoutOsEnviron(text: string, context: PlaceholderContext, placeholder?: string): string {
  const name = variableIn(text);
  return name === undefined ? text.replaceAll('$', '$$$$') : reference(name, context, placeholder);
}

/** `placeholder`: the value in the file of variables until it is filled in. */
export function reference(
  name: string,
  { variables, source }: PlaceholderContext,
  placeholder?: string,
): string {
  variables.need(name, source, placeholder);
  return `$\{${name}}`;
}

export function secret(name: string, value: string, owner: string, context: PlaceholderContext): string {
  if (value.startsWith('os.environ/')) return withoutOsEnviron(value, context);
  return context.variables.reference(variableName(name), value, owner, `${owner} in ${context.source}`);
}
