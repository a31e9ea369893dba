import { LIMITS } from '../../core/limits.ts';
import { type Declaration, declaredRoots } from '../../server/expressions/cel/declarations.ts';
import type { FunctionDefinition } from '../../server/expressions/cel/functions/define.ts';
import { FUNCTION_GROUPS } from '../../server/expressions/cel/functions/index.ts';
import { MACROS } from '../../server/expressions/cel/macros.ts';
import type { DocumentedScope } from '../../server/expressions/scopes.ts';
import { expressionScopes } from '../../server/features.ts';
import { entry, heading, page, paragraph, seeAlso, subheading, title } from './roff.ts';

/**
 * agctl-expressions(7): where expressions are used, the variables with their members, and the functions, from their
 * declarations.
 */
export function expressionsPage(): string {
  return page(
    title('agctl-expressions', 7, 'expressions in the configuration of agctl'),
    heading('Description'),
    paragraph(
      'Expressions are CEL, the Common Expression Language (https://cel.dev). They are checked when the configuration is read: an unknown variable or function is an error, and so is a member that is probably misspelt.',
    ),
    paragraph(
      'A variable that is available in a scope but not set is null; a member that is never set in its scope causes a warning (AGW0309). Reading an absent member is a failure; `has(jwt.sub)`, `jwt.?sub` and `default(jwt.sub, "")` avoid it. They fail themselves for a member of a value that can have none, such as a string, and `has` also for one of null, unless the null is that of a variable that is not set. A rule that fails allows nothing, and a `deny` rule that fails rejects the request; a field, header or attribute whose expression fails is omitted.',
    ),
    paragraph(
      'The right side of `in` is a list or a map. With a string, the expression fails; validation warns if that is certain (AGW0310). To search in a string, use `text.contains(part)`. Claims are the exception: a value of `jwt`, `apiKey` or `extauthz` on the right side of `in` that is a string counts as a list of one, because identity providers write a list with a single role as a string. `"admin" in jwt.roles` is true for `admin` and false for `superadmin`. Elsewhere such a claim is a string, so an OAuth scope must be split first: `"write" in jwt.scope.split(" ")`.',
    ),
    paragraph(
      `If an expression of a policy or backend reads \`request.body\` or \`request.bodyPrefix\`, a JSON body in which an object has a duplicate member is answered with status 400, because the server behind the gateway could read the other member; so is a body with more than ${LIMITS.jsonKeys} members or ${LIMITS.jsonDepth} levels. \`json(text)\` fails for such a text. If a rule of \`authorization\` reads a member of \`json(request.body)\`, or one of \`mcpAuthorization\` a member of \`mcp.tool.arguments\`, so is a body, or call, with a member at the same place whose name differs in case, white space or Unicode form only, or is \`__proto__\`.`,
    ),
    heading('Scopes'),
    paragraph(
      'The variables available in each scope, and the configuration keys whose expressions are evaluated in it. `[]` denotes each entry of a list.',
    ),
    expressionScopes.flatMap(scopeEntry),
    heading('Variables'),
    paragraph(
      'Members are listed if they are known. The members of other variables depend on the token, client, key or service.',
    ),
    declaredRoots().flatMap(([name, root]) => [
      ...subheading(name),
      ...paragraph(root.doc),
      ...memberEntries(name, root),
    ]),
    heading('Functions'),
    paragraph('Square brackets enclose optional arguments.'),
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

function scopeEntry({ name, doc, keys, also, roots, unavailable: members }: DocumentedScope): string[] {
  const where = [...keys.map((key) => `\`${key}\``), ...(also === undefined ? [] : [also])];
  const unset = Object.keys(members);
  const missing = unset.length === 0 ? [] : [`Not set in this scope: ${list(unset)}.`];
  return entry(name, doc, `Variables: ${list(roots)}.`, ...missing, ...where);
}

/** One entry per member, at any depth, and one line for names that are accepted but never set. */
function memberEntries(path: string, { members = {}, elsewhere = [] }: Declaration): string[] {
  const entries = Object.entries(members).flatMap(([name, member]) => [
    ...entry(`${path}.${name}`, member.type, member.doc),
    ...memberEntries(`${path}.${name}`, member),
  ]);
  if (elsewhere.length === 0) return entries;
  return [...entries, ...paragraph(`Accepted in \`${path}\`, and never set: ${list(elsewhere)}.`)];
}

/** The distinct texts, formatted as code. */
function list(texts: readonly string[]): string {
  return [...new Set(texts)].map((text) => `\`${text}\``).join(', ');
}

/** `value.substring(a[, b])`; `...` if the number of arguments is unlimited. */
function signature({ name, min, max }: FunctionDefinition): string {
  const names = ['a', 'b', 'c', 'd'];
  const some = names.slice(0, max > names.length ? Math.max(min, 1) : max);
  const required = some.slice(0, min).join(', ');
  const optional = some.slice(min).map((each, index) => (min + index === 0 ? each : `, ${each}`));
  const rest = max > names.length ? ', ...' : '';
  const args = `${required}${optional.map((each) => `[${each}`).join('')}${rest}${']'.repeat(optional.length)}`;
  return `${name.startsWith('.') ? 'value' : ''}${name}(${args})`;
}
