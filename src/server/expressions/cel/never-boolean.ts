import { dottedName } from './access.ts';
import type { ValueType } from './declarations.ts';
import { declarationOf } from './declarations.ts';
import type { Node } from './syntax.ts';

/** The words for a text. */
export const TEXT = 'a text';

/**
 * What an expression gives when that is certainly not a boolean, in words (`a number`, `a list`); undefined when it
 * may be one. Looks at the outermost node only, where no macro can have given a variable's name to anything else.
 */
export function neverBoolean(node: Node): string | undefined {
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
      const yes = neverBoolean(node.yes);
      return yes !== undefined && neverBoolean(node.no) !== undefined ? yes : undefined;
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
  '+': 'a number, text or list',
  '-': 'a number or a time',
  '*': 'a number',
  '/': 'a number',
  '%': 'a number',
};

const TYPES: Readonly<Record<ValueType, string | undefined>> = {
  string: TEXT,
  int: 'a number',
  double: 'a number',
  bool: undefined,
  bytes: 'bytes',
  timestamp: 'a time',
  map: 'a map',
  list: 'a list',
  any: undefined,
  'string or bytes': 'a text or bytes',
};

/** Functions and methods that give the same kind of value whatever they are called on; others are not listed. */
const FUNCTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'a number': ['size', 'int', 'uint', 'double', 'indexOf', 'lastIndexOf', 'random'],
    [TEXT]: ['string', 'lowerAscii', 'upperAscii', 'trim', 'substring', 'charAt', 'replace', 'regexReplace'],
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
  if (typeof value === 'string') return TEXT;
  return value instanceof Uint8Array ? 'bytes' : 'a number';
}
