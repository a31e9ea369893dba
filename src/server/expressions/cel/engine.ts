import { createRequire } from 'node:module';
import type { ASTNode, Environment } from '@marcbachmann/cel-js';
import { CelSyntaxError } from './errors.ts';
import { CEL_LIMITS } from './limits.ts';
import { parserProblem } from './problems.ts';
import type { Literal, Node } from './syntax.ts';

/**
 * The only file that knows the CEL package. It gives the language: lexer, grammar, precedence, escapes, positions and
 * size limits. Its evaluator is not used, because a gateway needs what it cannot do: bound the work of an evaluation,
 * replace built-ins (`matches` is a backtracking RegExp there), accept values of unknown type in `c ? 1 : "a"`, read
 * request members lazily, and fail without putting values into messages. `compile.ts` evaluates instead.
 */
function createGrammar({ Environment }: Package): Environment {
  return new Environment({
    unlistedVariablesAreDyn: true,
    enableOptionalTypes: true,
    limits: {
      maxAstNodes: CEL_LIMITS.nodes,
      maxDepth: CEL_LIMITS.depth,
      maxListElements: CEL_LIMITS.nodes,
      maxMapEntries: CEL_LIMITS.nodes,
    },
  });
}

type Package = typeof import('@marcbachmann/cel-js');
let loaded: { readonly grammar: Environment; readonly ParseError: Package['ParseError'] } | undefined;

/** Loads the package at the first expression: it declares all functions of its evaluator, which takes 10 ms. */
function engine(): NonNullable<typeof loaded> {
  if (loaded === undefined) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of the package
    const library = createRequire(import.meta.url)('@marcbachmann/cel-js') as Package;
    loaded = { grammar: createGrammar(library), ParseError: library.ParseError };
  }
  return loaded;
}

/** Parses an expression. Throws `CelSyntaxError` with code AGW0201 or, over a limit, AGW0204. */
export function parse(source: string): Node {
  if (source.length > CEL_LIMITS.sourceLength) {
    throw new CelSyntaxError({
      code: 'AGW0204',
      message: `the expression is longer than ${CEL_LIMITS.sourceLength} characters`,
      start: 0,
      end: source.length,
    });
  }
  try {
    return convert(engine().grammar.parse(source).ast);
  } catch (error) {
    if (error instanceof engine().ParseError) {
      throw parserProblem(source, error.code, error.summary, error.range ?? { start: 0, end: source.length });
    }
    // Prefix operators are not in the parser's depth count: thousands of `!` end on the stack instead.
    if (error instanceof RangeError)
      throw parserProblem(source, 'limit_exceeded', 'maxDepth', { start: 0, end: source.length });
    throw error;
  }
}

function convert(ast: ASTNode): Node {
  const { start, end } = ast;
  switch (ast.op) {
    case 'value':
      return { kind: 'literal', start, end, value: literal(ast) };
    case 'id':
      return { kind: 'name', start, end, name: ast.args };
    case '.':
    case '.?':
      return {
        kind: 'member',
        start,
        end,
        target: convert(ast.args[0]),
        name: ast.args[1],
        nameStart: ast.pos,
        optional: ast.op === '.?',
      };
    case '[]':
    case '[?]':
      return {
        kind: 'index',
        start,
        end,
        target: convert(ast.args[0]),
        index: convert(ast.args[1]),
        optional: ast.op === '[?]',
      };
    case 'call':
      return {
        kind: 'call',
        start,
        end,
        name: ast.args[0],
        target: undefined,
        args: ast.args[1].map(convert),
      };
    case 'rcall':
      return {
        kind: 'call',
        start,
        end,
        name: ast.args[0],
        target: convert(ast.args[1]),
        args: ast.args[2].map(convert),
      };
    case 'list':
      return { kind: 'list', start, end, items: ast.args.map(convert) };
    case 'map':
      return {
        kind: 'map',
        start,
        end,
        entries: ast.args.map(([key, value]) => [convert(key), convert(value)] as const),
      };
    case '?:':
      return {
        kind: 'choice',
        start,
        end,
        test: convert(ast.args[0]),
        yes: convert(ast.args[1]),
        no: convert(ast.args[2]),
      };
    case '&&':
      return { kind: 'and', start, end, left: convert(ast.args[0]), right: convert(ast.args[1]) };
    case '||':
      return { kind: 'or', start, end, left: convert(ast.args[0]), right: convert(ast.args[1]) };
    case '!_':
      return { kind: 'not', start, end, operand: convert(ast.args) };
    case '-_':
      return { kind: 'negate', start, end, operand: convert(ast.args) };
    default:
      return {
        kind: 'binary',
        start,
        end,
        operator: ast.op,
        left: convert(ast.args[0]),
        right: convert(ast.args[1]),
      };
  }
}

function literal(ast: Extract<ASTNode, { op: 'value' }>): Literal {
  const value = ast.args;
  if (value instanceof Uint8Array) return bytes(ast.input.slice(ast.start, ast.end), value);
  if (typeof value !== 'object' || value === null) return value;
  // What is left is the package's class for `1u`.
  return { uint: value.valueOf() };
}

const NOT_ASCII = /[^\0-\x7f]+/gu;

/** The package keeps the low byte of each character in b"..."; cel-spec ("Values", bytes) wants its UTF-8 bytes. */
function bytes(written: string, read: Uint8Array): Uint8Array {
  if (!NOT_ASCII.test(written)) return read;
  const escaped = written.replace(NOT_ASCII, (part) =>
    Buffer.from(part)
      .toString('hex')
      .replace(/../g, (byte) => `\\x${byte}`),
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the text is a literal of bytes
  return engine().grammar.parse(escaped).ast.args as Uint8Array;
}
