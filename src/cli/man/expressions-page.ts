import { LIMITS } from '../../core/limits.ts';
import { type Declaration, declaredRoots } from '../../server/expressions/cel/declarations.ts';
import type { FunctionDefinition } from '../../server/expressions/cel/functions/define.ts';
import { FUNCTION_GROUPS } from '../../server/expressions/cel/functions/index.ts';
import { MACROS } from '../../server/expressions/cel/macros.ts';
import type { DocumentedScope } from '../../server/expressions/scopes.ts';
import { expressionScopes } from '../../server/features.ts';
import { entry, heading, page, paragraph, seeAlso, subheading, title } from './roff.ts';

/** agctl-expressions(7): the places of expressions, variables with their members, and functions, from their declarations. */
export function expressionsPage(): string {
  return page(
    title('agctl-expressions', 7, 'expressions in the configuration of agctl'),
    heading('Description'),
    paragraph(
      'Expressions are CEL, the Common Expression Language (https://cel.dev). They are checked when the configuration is read: an unknown variable or function is an error, and so is the likely typo of a member.',
    ),
    paragraph(
      'A variable that a place has and that is not set is null; a member that is never set in its place gets a warning (AGW0309). To read a member that is absent is a failure; `has(jwt.sub)`, `jwt.?sub` and `default(jwt.sub, "")` avoid it. A rule that fails does not let anything pass, and a `deny` rule that fails refuses; a field, header or attribute whose expression fails is left out.',
    ),
    paragraph(
      'The right side of `in` is a list or a map; over a text it is a failure, of which validation warns where it is certain (AGW0310), and `text.contains(part)` finds a part. A claim is the exception: where a value of `jwt`, `apiKey` or `extauthz` stands on the right of `in` and is a string, it counts as a list of one, because identity providers write a list of one role as a string. `"admin" in jwt.roles` is true for `admin` and false for `superadmin`. Everything else sees the string, so a scope is taken apart first: `"write" in jwt.scope.split(" ")`.',
    ),
    paragraph(
      `Where an expression of a policy or backend reads \`request.body\` or \`request.bodyPrefix\`, a JSON body in which an object has the same member twice is refused with 400, and so is one with more than ${LIMITS.jsonKeys} members or ${LIMITS.jsonDepth} levels: what is behind the gateway could read another member. \`json(text)\` fails for such a text.`,
    ),
    heading('Places'),
    paragraph(
      'What each place may read, and the keys of the configuration that are such a place. `[]` stands for each entry of a list.',
    ),
    expressionScopes.flatMap(scopeEntry),
    heading('Variables'),
    paragraph(
      'Members are there when they are known. Those of variables without a list are whatever the token, client, key or service gave.',
    ),
    declaredRoots().flatMap(([name, root]) => [
      ...subheading(name),
      ...paragraph(root.doc),
      ...memberEntries(name, root),
    ]),
    heading('Functions'),
    paragraph('Square brackets stand for arguments that may be left out.'),
    entry('Macros', list([...MACROS.values()].map(({ usage }) => usage))),
    Object.entries(FUNCTION_GROUPS).flatMap(([name, functions]) =>
      entry(name, list(functions.map(signature))),
    ),
    seeAlso([
      { name: 'agctl', section: 1 },
      { name: 'agctl-config', section: 5 },
      { name: 'agctl-errors', section: 7 },
    ]),
  );
}

function scopeEntry({ name, doc, keys, also, roots, unset: members }: DocumentedScope): string[] {
  const where = [...keys.map((key) => `\`${key}\``), ...(also === undefined ? [] : [also])];
  const unset = Object.keys(members);
  const missing = unset.length === 0 ? [] : [`Not set there: ${list(unset)}.`];
  return entry(name, doc, `Variables: ${list(roots)}.`, ...missing, ...where);
}

/** One entry for each member, at any depth, and one line for names that are accepted only. */
function memberEntries(path: string, { members = {}, elsewhere = [] }: Declaration): string[] {
  const entries = Object.entries(members).flatMap(([name, member]) => [
    ...entry(`${path}.${name}`, member.type, member.doc),
    ...memberEntries(`${path}.${name}`, member),
  ]);
  if (elsewhere.length === 0) return entries;
  return [...entries, ...paragraph(`Accepted in \`${path}\`, and never set: ${list(elsewhere)}.`)];
}

/** Each text as code, once. */
function list(texts: readonly string[]): string {
  return [...new Set(texts)].map((text) => `\`${text}\``).join(', ');
}

/** `value.substring(a[, b])`; `...` when there is no number of arguments that it must not exceed. */
function signature({ name, min, max }: FunctionDefinition): string {
  const names = ['a', 'b', 'c', 'd'];
  const some = names.slice(0, max > names.length ? Math.max(min, 1) : max);
  const required = some.slice(0, min).join(', ');
  const optional = some.slice(min).map((each, index) => (min + index === 0 ? each : `, ${each}`));
  const rest = max > names.length ? ', ...' : '';
  const args = `${required}${optional.map((each) => `[${each}`).join('')}${rest}${']'.repeat(optional.length)}`;
  return `${name.startsWith('.') ? 'value' : ''}${name}(${args})`;
}
