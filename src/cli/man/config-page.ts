import { PACKAGE_NAME } from '../../core/version.ts';
import { alternatives, type SchemaNode, schemaFacts } from '../schema-facts.ts';
import { entry, heading, page, paragraph, seeAlso, title, verbatim } from './roff.ts';

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
    verbatim([`# yaml-language-server: $schema=node_modules/${PACKAGE_NAME}/man/config.schema.json`]),
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
    schemaFacts(node, required),
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
