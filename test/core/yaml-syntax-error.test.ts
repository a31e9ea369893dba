import { expect, it } from 'vitest';
import { YamlSource } from '../../src/core/yaml/source.ts';

/** Line and column, the marked text, message, label and help of the only problem. */
function problem(text: string): readonly (string | undefined)[] {
  const { diagnostics } = YamlSource.parse(text, 'gateway.yaml', {});
  expect(diagnostics).toHaveLength(1);
  const [{ range, message, label, help }] = diagnostics as [(typeof diagnostics)[number]];
  const place = `${range.start.line}:${range.start.column}`;
  return [place, text.slice(range.start.offset, range.end.offset), message, label, help];
}

const ENTRY = 'this line does not belong to the list entry above it';
const INDENT = 'wrong indentation';
const ROUTES = 'gateways:\n  default:\n    port: 3000\n    routes:\n';

// Each is a line with changed indentation; the help names both lines that it may belong to.
it.each([
  [
    `${ROUTES}      - name: a\n       backends: []\n`,
    [
      '6:8',
      'backends',
      ENTRY,
      'indented by 7 spaces',
      'indent it like line 5 (8 spaces), or like line 4 (4 spaces)',
    ],
  ],
  [
    `${ROUTES}      # a: comment\n      - name: a\r\n        policies:\n            cors: {}\n\n       backends: []\n`,
    [
      '10:8',
      'backends',
      ENTRY,
      'indented by 7 spaces',
      'indent it like line 7 (8 spaces), or like line 4 (4 spaces)',
    ],
  ],
  [
    'gateways:\n  default:\n    port: 3000\n   routes: []\n',
    [
      '4:4',
      'routes',
      INDENT,
      'indented by 3 spaces',
      'indent it like line 3 (4 spaces), or like line 2 (2 spaces)',
    ],
  ],
  [
    'gateways:\n  default:\n    port: 3000\n     routes: []\n',
    ['4:6', 'routes', INDENT, 'indented by 5 spaces', 'indent it like line 3 (4 spaces)'],
  ],
  [' mcp: {}\nllm: {}\n', ['2:1', 'llm', INDENT, 'indented by 0 spaces', 'indent it like line 1 (1 space)']],
  ['a:\n  - b\n - c\n', ['3:2', '-', INDENT, 'indented by 1 space', 'indent it like line 2 (2 spaces)']],
  [
    'a:\n  b: 1\n  - c\n',
    ['3:3', '-', INDENT, 'indented by 2 spaces', 'a list follows a key that has no other value'],
  ],
  [
    'a:\n  - b: 1\n    - c\n',
    ['3:5', '-', INDENT, 'indented by 4 spaces', 'indent it like line 2 (2 spaces)'],
  ],
  [
    'a:\n    b:\n      c: |\n        text:\n           more\n   d: 1\n',
    [
      '6:4',
      'd',
      INDENT,
      'indented by 3 spaces',
      'indent it like line 2 (4 spaces), or like line 1 (0 spaces)',
    ],
  ],
])('misindented line is reported with the line to align with: %j', (text, expected) => {
  expect(problem(text)).toEqual(expected);
});

it.each([
  ['hostnames:\n  - name: *\n', '*', '`*` without a name: in YAML it marks an alias', '`"*"`'],
  ['allowOrigins: [*]\n', '*', '`*` without a name: in YAML it marks an alias', '`"*"`'],
  [
    'hostnames: [*.example.com]\n',
    '*.example.com',
    'no anchor `&.example.com` before this alias',
    '`"*.example.com"`',
  ],
  ['a: & b\n', '&', '`&` without a name: in YAML it marks an anchor', '`"&"`'],
  ['port 3000\nroutes: []\n', 'port 3000', '`:` is missing after this key', 'space after the colon'],
  ['a:\n  port:3000\n  b: 1\n', 'port:3000', '`:` is missing after this key', 'space after the colon'],
  ['a:\n  c: 1\n  b 1\n', 'b 1', '`:` is missing after this key', 'space after the colon'],
  ['a: - b\n', '-', 'a list cannot begin on the line of its key', 'on the next line'],
  ['a: "b" c\n', 'c', 'unexpected text after the end of the value', 'in quotes'],
  ['a: {b: 1} c\n', 'c', 'unexpected text after the end of the value', 'in quotes'],
  ['a: {b: 1 c: 2}\n', '1 c: 2', '`,` is missing', 'comma'],
  ['a: {b: 1, , c: 2}\n', ',', 'unexpected `,`', 'delete'],
  ['a: ["b" "c"]\n', '"', '`,` is missing', 'comma'],
  ['a: "b"#c\n', '#c', 'a space is missing', 'before `#`'],
  ['a: | b\n', 'b', 'the text of `|` or `>` cannot begin on the same line', 'next line'],
  ['a:\n  b: {\n    c: 1\n}\n', '}', 'wrong indentation', 'indent the `}` more'],
  ['a: 1]\nb: ]\n', ']', 'not valid YAML: unexpected `]`', 'in quotes'],
])('the syntax error in %j has a specific message and help', (text, marked, message, help) => {
  const found = problem(text);
  expect(found).toMatchObject({ 1: marked, 2: message, 4: expect.stringContaining(help) });
});

it('syntax errors do not quote text that may be secret', () => {
  for (const text of ['apiKey: "a" sk-secret\n', 'apiKey\nsk-secret\n: x', 'a:\n  - b: 1\n   sk-secret: 1\n'])
    expect(JSON.stringify(problem(text).slice(2))).not.toContain('sk-secret');
});
