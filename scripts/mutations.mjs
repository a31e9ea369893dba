// Small changes to a source file, each of which some test should notice: `scripts/mutants.mjs` applies them.
import { parseAst } from 'rolldown/parseAst';

/** Functions that tell whether a value has a shape; those named `isSomething` are found by their name. */
const CHECKS = /^(?:is[A-Z]\w*|hasOwn|test)$/;
/** Functions of `src/core/foreign.ts` that replace a value of another shape. Without them, the value itself is used. */
const CONVERSIONS = new Set(['membersOf', 'stringIn', 'textIn', 'elementsOf']);
const EQUALITY = new Set(['===', '!==', '==', '!=']);
const ORDER = new Set(['<', '<=', '>', '>=']);
/** Parts of the TypeScript syntax that contain code which runs. */
const TYPED_CODE = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSNonNullExpression',
  'TSParameterProperty',
]);
const SWAPPED = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
};

/**
 * The changes that are possible in a file, in the order of the text: `text.slice(0, start) + replacement + text.slice(end)`.
 * Those of kind `shape` remove a check of a value: of its type, a bound, a fallback, an optional chain. With `all`, those of
 * kind `logic` follow the usual operators of mutation testing.
 */
export function mutationsOf(text, name = 'file.ts', { all = false } = {}) {
  const found = [];
  const of = (node) => text.slice(node.start, node.end);
  const add = (kind, node, ...replacements) => {
    for (const replacement of replacements)
      if (kind === 'shape' || all)
        found.push({ kind, start: node.start, end: node.end, original: of(node), replacement });
  };
  const visit = (node) => {
    if (node.type.startsWith('TS') && !TYPED_CODE.has(node.type)) return;
    if (isShapeCheck(node)) add('shape', node, 'true', 'false');
    else mutateShape(node, of, add);
    mutateLogic(node, of, add);
    for (const child of Object.values(node)) {
      if (Array.isArray(child)) for (const each of child) if (isNode(each)) visit(each);
      if (isNode(child)) visit(child);
    }
  };
  visit(parseAst(text, { lang: name.endsWith('x') ? 'tsx' : 'ts' }, name));
  return found.sort((a, b) => a.start - b.start || b.end - a.end);
}

const isNode = (value) => typeof value?.type === 'string';

function isShapeCheck(node) {
  if (node.type === 'CallExpression') return CHECKS.test(nameOf(node.callee));
  if (node.type !== 'BinaryExpression') return false;
  if (node.operator === 'in' || node.operator === 'instanceof' || ORDER.has(node.operator)) return true;
  return EQUALITY.has(node.operator) && (tellsShape(node.left) || tellsShape(node.right));
}

const nameOf = (callee) => (callee.type === 'MemberExpression' ? callee.property : callee).name ?? '';

const tellsShape = (node) =>
  (node.type === 'UnaryExpression' && node.operator === 'typeof') ||
  (node.type === 'Literal' && node.value === null && node.raw === 'null') ||
  (node.type === 'Identifier' && node.name === 'undefined');

function mutateShape(node, of, add) {
  if (node.type === 'LogicalExpression' && node.operator === '??') add('shape', node, `(${of(node.left)})`);
  if (node.optional === true) {
    const start = (node.object ?? node.callee)?.end;
    if (start !== undefined) {
      const rest = of({ start, end: node.end });
      const at = rest.indexOf('?.');
      const isNamed = node.type === 'MemberExpression' && !node.computed;
      add('shape', { start: start + at, end: start + at + 2 }, isNamed ? '.' : '');
    }
  }
  if (node.type === 'CallExpression' && CONVERSIONS.has(nameOf(node.callee)) && node.arguments.length === 1)
    add('shape', node, `(${of(node.arguments[0])})`);
}

function mutateLogic(node, of, add) {
  switch (node.type) {
    case 'IfStatement':
    case 'ConditionalExpression':
    case 'WhileStatement':
      add('logic', node.test, `!(${of(node.test)})`);
      break;
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const swapped = SWAPPED[node.operator];
      if (swapped === undefined || isText(node.left) || isText(node.right)) break;
      const between = of({ start: node.left.end, end: node.right.start });
      const start = node.left.end + between.indexOf(node.operator);
      add('logic', { start, end: start + node.operator.length }, swapped);
      break;
    }
    case 'ExpressionStatement':
    case 'ThrowStatement':
      add('logic', node, ';');
      break;
    case 'Literal':
      if (typeof node.value === 'boolean') add('logic', node, String(!node.value));
      break;
    case 'ReturnStatement':
      if (node.argument) add('logic', node, 'return undefined;');
      break;
    default:
  }
}

const isText = (node) =>
  node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node.value === 'string');

/** Line and column of an offset, both counted from 1. */
export function placeOf(text, offset) {
  const before = text.slice(0, offset).split('\n');
  return `${before.length}:${before.at(-1).length + 1}`;
}

/** `count` of the elements, in their order: chosen by `seed`, equal for equal seeds. */
export function sample(elements, count, seed) {
  if (elements.length <= count) return elements;
  // Mulberry32, public domain: enough to choose, and the same everywhere.
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  const chosen = elements
    .map((element, index) => ({ element, index, order: random() }))
    .sort((a, b) => a.order - b.order)
    .slice(0, count);
  return chosen.sort((a, b) => a.index - b.index).map(({ element }) => element);
}
