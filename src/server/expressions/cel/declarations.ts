/** A variable or a member of one: what `agctl-expressions(7)` says of it, and what a typo is measured against. */
export interface Declaration {
  readonly type: ValueType;
  /** Its meaning in one line; `backticks` mark code. */
  readonly doc: string;
  /** The members it may have. Absent where they come from a client, a token, the file or another service. */
  readonly members?: Readonly<Record<string, Declaration>>;
  /** Members that configurations made for other gateways may name: accepted, and never set by this one. */
  readonly elsewhere?: readonly string[];
}

export type ValueType =
  | 'string'
  | 'int'
  | 'double'
  | 'bool'
  | 'bytes'
  | 'timestamp'
  | 'map'
  | 'list'
  | 'any'
  | 'string or bytes';

/** Root variables of other gateways. No scope has them, and a message can say so. */
const ELSEWHERE = ['destination', 'extproc', 'mcpGuardrails', 'metadata', 'basicAuth', 'env'] as const;

const declared = new Map<string, Declaration>();

/** Declares a root variable: its name is then known to messages, and its members to the check for typos. */
export function declareRoot(name: string, declaration: Declaration): void {
  declared.set(name, declaration);
}

/** Every declared root, in the order of declaration. */
export function declaredRoots(): readonly (readonly [string, Declaration])[] {
  return [...declared];
}

/** All names of roots that a message may speak of. */
export function rootNames(): readonly string[] {
  return [...declared.keys(), ...ELSEWHERE];
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

/** The member at the beginning of a path that this gateway never sets; undefined when there is none. */
export function foreignMember(path: readonly string[]): string | undefined {
  for (let length = 1; length < path.length; length++) {
    const name = path[length] as string;
    if (declarationOf(path.slice(0, length))?.elsewhere?.includes(name) === true)
      return path.slice(0, length + 1).join('.');
  }
  return undefined;
}
