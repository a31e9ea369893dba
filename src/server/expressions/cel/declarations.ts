import { joinWords } from '../../../core/schema/describe-types.ts';
import { completed, nearest } from '../../../core/suggest.ts';

/** Declaration of a variable or member, for `agctl-expressions(7)` and for detecting misspelled names. */
export interface Declaration {
  readonly type: ValueType;
  /** Its meaning in one line; `backticks` mark code. */
  readonly doc: string;
  /** Its possible members. Undefined if they come from a client, a token, the configuration or another service. */
  readonly members?: Readonly<Record<string, Declaration>>;
  /** Members of other gateways that configurations may use: accepted, but never set. */
  readonly elsewhere?: readonly string[];
}

export type ValueType =
  | 'string'
  | 'int'
  | 'double'
  | 'bool'
  | 'bytes'
  | 'timestamp'
  | 'duration'
  | 'map'
  | 'list'
  | 'any'
  | 'string or bytes';

const declared = new Map<string, Declaration>();

/** Declares a root variable, for messages and for detecting misspelled members. */
export function declareRoot(name: string, declaration: Declaration): void {
  declared.set(name, declaration);
}

/** Every declared root, in the order of declaration. */
export function declaredRoots(): readonly (readonly [string, Declaration])[] {
  return [...declared];
}

/** All names of root variables that messages can mention. */
function rootNames(): readonly string[] {
  return [...declared.keys()];
}

/** What is declared at a path, such as `mcp.tool.name`; undefined for anything free-form or unknown. */
export function declarationOf([root = '', ...path]: readonly string[]): Declaration | undefined {
  let found = declared.get(root);
  for (const name of path) {
    const members = found?.members;
    found = members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined;
  }
  return found;
}

/** The first member of a path that this gateway never sets; undefined if there is none. */
export function foreignMember(path: readonly string[]): string | undefined {
  for (let length = 1; length < path.length; length++) {
    const name = path[length] ?? '';
    if (declarationOf(path.slice(0, length))?.elsewhere?.includes(name) === true)
      return path.slice(0, length + 1).join('.');
  }
  return undefined;
}

/**
 * The member that was probably meant, when `member` is not one of what is at `path` but close to one. A name that is
 * close to nothing passes: it reads as a missing key, and a newer upstream may know it.
 */
export function misspelledMember(path: readonly string[], member: string): string | undefined {
  const owner = declarationOf(path);
  if (owner?.members === undefined || Object.hasOwn(owner.members, member)) return undefined;
  if (owner.elsewhere?.includes(member)) return undefined;
  const members = Object.keys(owner.members);
  return nearest(member, members) ?? completed(member, members);
}

interface MemberPath {
  readonly path: string;
  readonly name: string;
  /** Its first member, as part of a sentence. */
  readonly example: string;
}

/** Members with a name, or else a similar one, inside of variables that are available: at most three. */
function memberPaths(name: string, available: readonly string[]): MemberPath[] {
  const found: MemberPath[] = [];
  const visit = (path: string, { members = {} }: Declaration, depth: number): void => {
    for (const [member, declaration] of Object.entries(members)) {
      const [inner] = Object.keys(declaration.members ?? {});
      const example = inner === undefined ? '' : `, as in \`${path}.${member}.${inner}\``;
      found.push({ path: `${path}.${member}`, name: member, example });
      if (depth > 1) visit(`${path}.${member}`, declaration, depth - 1);
    }
  };
  for (const root of available) {
    const declaration = declared.get(root);
    if (declaration !== undefined) visit(root, declaration, 2);
  }
  const names = found.map((each) => each.name);
  const wanted = names.includes(name) || name.length < 4 ? name : nearest(name, names);
  return found.filter((each) => each.name === wanted).slice(0, 3);
}

/** The error message and the help for a name that is not a variable of the scope. */
export function unknownVariable(
  name: string,
  available: readonly string[],
): { message: string; help: string | undefined } {
  const list = available.length === 0 ? undefined : `available here: ${available.join(', ')}`;
  if (rootNames().includes(name))
    return { message: `the variable \`${name}\` is not available here`, help: list };
  const similar = nearest(name, available) ?? nearest(name, rootNames());
  if (similar !== undefined) {
    const where = available.includes(similar) ? '' : ', which is not available here';
    return {
      message: `unknown variable \`${name}\``,
      help: `a variable with a similar name exists: \`${similar}\`${where}`,
    };
  }
  const paths = memberPaths(name, available);
  if (paths.length > 0)
    return {
      message: `unknown variable \`${name}\``,
      help: `did you mean ${joinWords(paths.map(({ path, example }) => `\`${path}\`${example}`))}?`,
    };
  // A bare word is most often a text without its quotes.
  return {
    message: `unknown variable \`${name}\``,
    help: `to write a string, quote it: "${name}"${list === undefined ? '' : `; ${list}`}`,
  };
}
