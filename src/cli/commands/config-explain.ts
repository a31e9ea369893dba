import { fileURLToPath } from 'node:url';
import { DIAGNOSTIC_CODES } from '../../core/diagnostic.ts';
import { ERRORS } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { escapeControls } from '../../core/log.ts';
import { PACKAGE_ROOT } from '../../core/package-root.ts';
import { nearest } from '../../core/suggest.ts';
import { configJsonSchema } from '../../server/config/json-schema.ts';
import type { Run } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { alternatives, type SchemaNode, schemaFacts } from '../schema-facts.ts';
import { matchesText, troubles } from '../troubleshooting.ts';

interface Options {
  readonly operands?: readonly string[];
}

export const run: Run<Options> = async ({ operands = [] }, context) => {
  const [word] = operands;
  if (word === undefined)
    throw new CommandError('usage', 'which code or key?', 'agctl config explain AGW0101, or mcp.targets');
  const text =
    codeText(word) ??
    (word === 'config' ? `${keyText(word)}\n${pageText(word)}` : (pageText(word) ?? keyText(word)));
  context.stdout.write(asCalled(text, context));
  return EXIT_CODES.ok.code;
};

/** Pages of the manual that are not commands. npm installs none of a package in a folder, so their files are named. */
const PAGES: Readonly<Record<string, string>> = {
  expressions: 'agctl-expressions.7',
  config: 'agctl-config.5',
  errors: 'agctl-errors.7',
};

function pageText(word: string): string | undefined {
  if (!Object.hasOwn(PAGES, word)) return undefined;
  return `man ${fileURLToPath(new URL(`man/${PAGES[word]}`, PACKAGE_ROOT))}\n`;
}

/** What a diagnostic code, or the code of a request error, means. */
function codeText(word: string): string | undefined {
  const code = word.toUpperCase();
  const diagnostics: Readonly<Record<string, string>> = DIAGNOSTIC_CODES;
  if (Object.hasOwn(diagnostics, code))
    return `${code}  ${diagnostics[code]}\n\nagctl config validate shows where it applies, and how to correct it.\n`;
  if (/^AGW\d*$/.test(code)) {
    const near = nearest(code, Object.keys(diagnostics));
    throw new CommandError(
      'usage',
      `unknown code ${escapeControls(word)}`,
      near === undefined ? `codes: ${Object.keys(diagnostics).sort().join(', ')}` : `did you mean ${near}?`,
    );
  }
  return requestErrorText(word);
}

/**
 * Request errors with this code, status (`404`) or text (`route not found`), and what docs/troubleshooting.md says of the text; undefined
 * if there is nothing.
 */
function requestErrorText(word: string): string | undefined {
  const text = word.trim().toLowerCase();
  const all = Object.entries<(typeof ERRORS)[keyof typeof ERRORS]>(ERRORS);
  const named = all.filter(
    ([code, { status, codes = [] }]) => [code, ...codes].includes(word) || String(status) === text,
  );
  // What follows the usual text says more: `api key authentication failure: invalid credentials`.
  const [exact, longer] = ['', ': …'].map((rest) =>
    all.filter(([, error]) =>
      [error.text, ...(error.texts ?? [])].some((known) => matchesText(`${known}${rest}`, text)),
    ),
  );
  const found = [named, exact, longer].find((each) => each !== undefined && each.length > 0) ?? [];
  const blocks = [
    ...found.map(
      ([code, error]) =>
        `${code}  a request gets status ${error.status}, and the access log reason=${error.reason}\n\n${error.text}\n`,
    ),
    ...troubles(text),
  ];
  return blocks.length === 0 ? undefined : blocks.join('\n');
}

/** A key with its type, default and description, and the keys inside. */
function keyText(word: string): string {
  const root = configJsonSchema() as SchemaNode;
  const segments = segmentsOf(word);
  const found = nodesAt(root, segments);
  if (found.length === 0) return elsewhere(root, word, segments);
  const blocks = found.map(({ node, isRequired }) => {
    const inside = alternativesOf(node).flatMap((objects) =>
      objects.flatMap(({ properties = {} }) =>
        Object.entries(properties).map(([key, child]) => row(key, child, isRequiredIn(objects, key))),
      ),
    );
    const keys = [...new Set(inside)];
    return [
      schemaFacts(node, isRequired),
      node.description ?? '',
      ...(keys.length > 0 ? ['', 'Keys:', ...keys] : []),
    ]
      .filter((text, index) => text !== '' || index > 1)
      .join('\n');
  });
  return `${segments.join('.')}\n\n${[...new Set(blocks)].join('\n\nor\n\n')}\n`;
}

function row(key: string, node: SchemaNode, isRequired: boolean): string {
  // Up to a colon only in front of a list.
  const [sentence = ''] = /^.*?(?:\.(?=\s|$)|:(?=\n))/s.exec(node.description ?? '') ?? [
    node.description ?? '',
  ];
  return `  ${key.padEnd(24)} ${sentence.replaceAll('\n', ' ')}${isRequired ? ' (required)' : ''}`.trimEnd();
}

/** Keys without indexes: `a.b[0].c`, `a.b[].c`, and `/a/b/0/c` are the same. */
function segmentsOf(word: string): readonly string[] {
  const dotted = word.startsWith('/')
    ? word.slice(1).split('/')
    : word.replaceAll(/\[[^\]]*\]/g, '').split('.');
  return dotted.filter((segment) => segment !== '' && !/^\d+$/.test(segment));
}

interface Found {
  readonly node: SchemaNode;
  readonly isRequired: boolean;
}

function nodesAt(root: SchemaNode, segments: readonly string[]): readonly Found[] {
  if (segments.length === 0) return [];
  let at: readonly Found[] = [{ node: root, isRequired: true }];
  for (const segment of segments)
    at = at.flatMap(({ node }) =>
      alternativesOf(node).flatMap((objects) =>
        objects.flatMap((object) => childOf(object, segment, isRequiredIn(objects, segment))),
      ),
    );
  const seen = new Set<string>();
  return at.filter(({ node }) => {
    const key = JSON.stringify(node);
    return !seen.has(key) && seen.add(key);
  });
}

/** Whether each of the objects that a value may be needs a key: one of several alternatives is not required. */
const isRequiredIn = (objects: readonly SchemaNode[], key: string): boolean =>
  objects.every(({ required = [] }) => required.includes(key));

/** A key, or any name of a map of names. */
function childOf(
  { properties = {}, additionalProperties }: SchemaNode,
  segment: string,
  isRequired: boolean,
): readonly Found[] {
  const own = Object.hasOwn(properties, segment) ? properties[segment] : undefined;
  if (own !== undefined) return [{ node: own, isRequired }];
  return typeof additionalProperties === 'object' ? [{ node: additionalProperties, isRequired: false }] : [];
}

/** The objects that a value may be, and those that entries of a list in its place may be: one group for each. */
function alternativesOf(node: SchemaNode): readonly (readonly SchemaNode[])[] {
  const direct = (each: SchemaNode): readonly SchemaNode[] => [
    ...(each.properties !== undefined || typeof each.additionalProperties === 'object' ? [each] : []),
    ...alternatives(each).flatMap(direct),
  ];
  const entries = (each: SchemaNode): readonly SchemaNode[] => [
    ...(each.items === undefined ? [] : [each.items]),
    ...alternatives(each).flatMap(entries),
  ];
  return [direct(node), ...entries(node).flatMap(alternativesOf)];
}

const objectsIn = (node: SchemaNode): readonly SchemaNode[] => alternativesOf(node).flat();

/** Where a key is that was named without its path or by the end of it, or that has a similar name. */
function elsewhere(root: SchemaNode, word: string, segments: readonly string[]): string {
  const places = new Map<string, string[]>();
  collect(root, [], places);
  const last = segments.at(-1) ?? '';
  const path = segments.join('.');
  const known = places.get(last) ?? [];
  const [only, ...others] = known.filter((place) => `.${place}`.endsWith(`.${path}`));
  if (only !== undefined) {
    if (others.length === 0) return keyText(only);
    const shown = [only, ...others].slice(0, 12);
    const more = others.length + 1 - shown.length;
    return `${path} is a key at several places:\n\n${shown.map((place) => `  ${place}`).join('\n')}\n${more > 0 ? `  and ${more} more\n` : ''}\n${keyText(only)}`;
  }
  const help =
    besides(root, segments) ?? known[0] ?? places.get(nearest(last, [...places.keys()]) ?? '')?.[0];
  throw new CommandError(
    'usage',
    `no key \`${escapeControls(word)}\` in a configuration`,
    help === undefined ? 'agctl config schema has all of them' : `did you mean ${help}?`,
  );
}

/** A path whose last key is similar and which exists: `mcp.targets` for `mcp.target`. */
function besides(root: SchemaNode, segments: readonly string[]): string | undefined {
  const parent = segments.slice(0, -1);
  const nodes = parent.length === 0 ? [root] : nodesAt(root, parent).map(({ node }) => node);
  const keys = nodes.flatMap(objectsIn).flatMap(({ properties = {} }) => Object.keys(properties));
  const near = nearest(segments.at(-1) ?? '', keys);
  return near === undefined ? undefined : [...parent, near].join('.');
}

/** All keys by their last name, shortest paths first. `depth` bounds schemas that contain themselves. */
function collect(root: SchemaNode, start: readonly string[], places: Map<string, string[]>): void {
  let level: { node: SchemaNode; path: readonly string[] }[] = [{ node: root, path: start }];
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth += 1) {
    level = level.flatMap(({ node, path }) =>
      objectsIn(node).flatMap(({ properties = {}, additionalProperties }) => [
        ...Object.entries(properties).map(([key, child]) => {
          const at = [...path, key];
          const known = places.get(key) ?? [];
          const shown = at.join('.');
          if (known.length < MAX_PLACES && !known.includes(shown)) places.set(key, [...known, shown]);
          return { node: child, path: at };
        }),
        ...(typeof additionalProperties === 'object'
          ? [{ node: additionalProperties, path: [...path, '<name>'] }]
          : []),
      ]),
    );
  }
}

/** Keys of policies of routes are at depth 6; deeper ones are named with their path. */
const MAX_DEPTH = 8;
const MAX_PLACES = 200;
