import { entry, heading, page, paragraph, seeAlso, title, verbatim } from './roff.ts';

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

/** agctl-config(5): every key of a configuration with its type, default and description, from its JSON Schema. */
export function configPage(schema: SchemaNode): string {
  const known = new Map<string, string>();
  return page(
    title('agctl-config', 5, 'configuration file of agctl'),
    heading('Description'),
    paragraph(
      'The configuration is one YAML file, given to `agctl serve` with `-f`. Keys that are not listed here are errors. Paths in it are relative to the folder of the file.',
    ),
    paragraph(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of variables in a configuration.
      'In values, `$NAME` and `${NAME}` are replaced by an environment variable, `${NAME:-text}` by the variable or else the text, and `$$` by a dollar sign. A duration is written as `300ms`, `5m` or `1h30m`. Expressions are CEL: agctl-expressions(7) lists the variables that they can read.',
    ),
    paragraph(
      'Where a mapping is optional, its key may also have no value (`policies:`): it then counts as absent.',
    ),
    paragraph('For completion and validation in an editor, begin the file with this line:'),
    verbatim(['# yaml-language-server: $schema=node_modules/agctl/man/config.schema.json']),
    paragraph(
      'Below, `[]` denotes each entry of a list and `<name>` a name of your choice. `agctl config validate` checks a file against all of this.',
    ),
    Object.entries(schema.properties ?? {}).flatMap(([key, node]) => [
      ...heading(key),
      ...describe(key, node, schema.required?.includes(key) ?? false, known),
    ]),
    seeAlso([
      { name: 'agctl', section: 1 },
      { name: 'agctl-config-validate', section: 1 },
      { name: 'agctl-errors', section: 7 },
      { name: 'agctl-expressions', section: 7 },
    ]),
  );
}

/**
 * One entry for the key and one for each key inside. A set of keys that was already listed is only referred to; `known`
 * contains where each set was first listed.
 */
function describe(path: string, node: SchemaNode, required: boolean, known: Map<string, string>): string[] {
  const inner = objectsInside(path, node);
  const references = inner.flatMap((object) => known.get(keySet(object.node)) ?? []);
  const text = [
    facts(node, required),
    node.description ?? '',
    ...references.map((place) => `Its keys are those of \`${place}\`.`),
  ].filter((line) => line !== '');
  return [...entry(path, ...text), ...inner.flatMap((object) => describeKeys(object, known))];
}

function describeKeys({ path, node }: ObjectAt, known: Map<string, string>): string[] {
  const keys = keySet(node);
  if (known.has(keys)) return [];
  known.set(keys, path);
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) =>
    describe(`${path}.${key}`, child, node.required?.includes(key) ?? false, known),
  );
}

function keySet(node: SchemaNode): string {
  return JSON.stringify([node.properties, node.required]);
}

interface ObjectAt {
  readonly path: string;
  readonly node: SchemaNode;
}

/** The objects with named keys that a value may be, or may contain as entries of a list or map. */
function objectsInside(path: string, node: SchemaNode): ObjectAt[] {
  const nested = [
    ...(node.items === undefined ? [] : objectsInside(`${path}[]`, node.items)),
    ...(typeof node.additionalProperties === 'object'
      ? objectsInside(`${path}.<name>`, node.additionalProperties)
      : []),
    ...alternatives(node).flatMap((each) => objectsInside(path, each)),
  ];
  const hasKeys = Object.keys(node.properties ?? {}).length > 0;
  return hasKeys ? [{ path, node }, ...nested] : nested;
}

function alternatives(node: SchemaNode): readonly SchemaNode[] {
  return node.anyOf ?? node.oneOf ?? [];
}

function facts(node: SchemaNode, required: boolean): string {
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
