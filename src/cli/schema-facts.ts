/** The subset of JSON Schema that the configuration schema uses. */
export interface SchemaNode {
  /** A list with `null` if the key may have no value; the page explains once that such a key counts as absent. */
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly secret?: boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  readonly items?: SchemaNode;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | SchemaNode;
}

/** The branches of a union; empty for any other schema. */
export function alternatives(node: SchemaNode): readonly SchemaNode[] {
  return node.anyOf ?? node.oneOf ?? [];
}

/** Type, default and the like of a key, in words. */
export function schemaFacts(node: SchemaNode, required: boolean): string {
  const { default: value } = node;
  return [
    typeName(node),
    ...(required ? ['required'] : []),
    ...(value === undefined || isEmpty(value) ? [] : [`default \`${plain(value)}\``]),
    ...(node.secret === true ? ['secret: masked wherever it is printed'] : []),
  ].join(', ');
}

/** `{}` and `[]` only indicate that the key is optional. */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function plain(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}

function typeName(node: SchemaNode): string {
  if (node.const !== undefined) return `\`${plain(node.const)}\``;
  if (node.enum !== undefined) return node.enum.map((value) => `\`${plain(value)}\``).join(' or ');
  const branches = alternatives(node);
  if (branches.length > 0) return branches.map(typeName).join(' or ');
  if (node.type === 'array') return node.items === undefined ? 'list' : `list of ${typeName(node.items)}`;
  if (typeof node.additionalProperties === 'object')
    return `map of names to ${typeName(node.additionalProperties)}`;
  return `${formatName(node)}${bounds(node)}`;
}

const FORMATS: Readonly<Record<string, string>> = {
  ipv4: 'IPv4 address',
  ipv6: 'IPv6 address',
  uri: 'URL',
};

function formatName({ format = '', type = 'any value' }: SchemaNode): string {
  return FORMATS[format] ?? [type].flat()[0] ?? '';
}

function bounds({ minimum, maximum }: SchemaNode): string {
  // Schemas of integers without a bound contain the largest safe integer instead.
  const isBounded = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  if (minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER)
    return isBounded ? ` from ${minimum} to ${maximum}` : `, at least ${minimum}`;
  return isBounded ? `, at most ${maximum}` : '';
}
