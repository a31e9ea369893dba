import { dottedName } from './access.ts';
import type { ValueType } from './declarations.ts';
import { declarationOf } from './declarations.ts';
import type { Node } from './syntax.ts';

/** Description of the type string. */
export const STRING = 'a string';

/**
 * Describes the result type of an expression (`a number`, `a list`) if it is never a boolean; undefined if it may be one.
 * Checks only the outermost node, where no macro variable can shadow a root variable.
 */
export function nonBooleanType(node: Node): string | undefined {
  switch (node.kind) {
    case 'literal':
      return literal(node.value);
    case 'list':
      return 'a list';
    case 'map':
      return 'a map';
    case 'negate':
      return 'a number';
    case 'binary':
      return ARITHMETIC[node.operator];
    case 'choice': {
      const yes = nonBooleanType(node.yes);
      return yes !== undefined && nonBooleanType(node.no) !== undefined ? yes : undefined;
    }
    case 'name':
    case 'member': {
      const type = declarationOf(dottedName(node)?.split('.') ?? [])?.type;
      return type === undefined ? undefined : TYPES[type];
    }
    case 'call':
      return FUNCTIONS.get(node.name);
    default:
      return undefined;
  }
}

const ARITHMETIC: Readonly<Record<string, string>> = {
  '+': 'a number, string or list',
  '-': 'a number or a time',
  '*': 'a number',
  '/': 'a number',
  '%': 'a number',
};

const TYPES: Readonly<Record<ValueType, string | undefined>> = {
  string: STRING,
  int: 'a number',
  double: 'a number',
  bool: undefined,
  bytes: 'bytes',
  timestamp: 'a time',
  duration: 'a time',
  map: 'a map',
  list: 'a list',
  any: undefined,
  'string or bytes': 'a string or bytes',
};

/** Functions and methods whose result type does not depend on their arguments; others are not listed. */
const FUNCTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'a number': ['size', 'int', 'uint', 'double', 'indexOf', 'lastIndexOf', 'random'],
    [STRING]: [
      'string',
      'lowerAscii',
      'upperAscii',
      'trim',
      'substring',
      'charAt',
      'replace',
      'regexReplace',
    ],
    bytes: ['bytes'],
    'a list': ['map'],
    'a map': ['mapValues', 'filterKeys', 'removeKeys'],
    'a time': ['timestamp', 'duration'],
    'a type': ['type'],
  }).flatMap(([what, names]) => names.map((name) => [name, what] as const)),
);

function literal(value: unknown): string | undefined {
  if (typeof value === 'boolean') return undefined;
  if (value === null) return 'null';
  if (typeof value === 'string') return STRING;
  return value instanceof Uint8Array ? 'bytes' : 'a number';
}
