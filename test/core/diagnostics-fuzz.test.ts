import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DiagnosticFormat } from '../../src/cli/render/diagnostics.ts';
import { renderDiagnostics } from '../../src/cli/render/diagnostics.ts';
import { diagnosticSource } from '../../src/core/render/source.ts';
import { YamlSource } from '../../src/core/yaml/source.ts';
import { checkSchema } from '../../src/server/config/reading/check.ts';
import { sampleSchema } from '../golden/diagnostics-schema.ts';
import { repeats } from '../kit/thorough.ts';

const VALID = `# comment
logging: &log {level: debug, color: true}
gateways:
  default:
    port: \${PORT:-3000}
    protocol: HTTP
    routes:
    - name: mcp
      timeout: 5s
      policies:
        mcpAuthentication:
          issuer: "https://idp.example/\\u0061"
          clientSecret: 'sec''ret'
        authorization:
          rules:
          - >-
            "a" in jwt.roles &&
            jwt.sub == "b"
          - |
            true
        extAuthz: {host: "localhost:9000", headers: {":path": '"/v1"'}}
      backends:
      - mcp: {targets: [a, b]}
      - ai: {model: m}
        weight: 3
      guards:
      - {type: regex, pattern: x}
providers:
- name: p
  apiKey: {file: key.txt}
`;

/** Offsets of words, so that mutations hit keys and values rather than whitespace. */
const words = [...VALID.matchAll(/[\w$:[\]{}"'|>&*-]+/g)].map((match) => ({
  start: match.index,
  text: match[0],
}));
const replacement = fc.oneof(
  fc.constantFrom(
    '',
    'x',
    '3',
    '-1',
    '1.5',
    'null',
    'true',
    '[]',
    '{}',
    '[a, b]',
    '{a: b}',
    '~',
    '"',
    "'",
    '*log',
    '&log',
  ),
  fc.constantFrom(
    '!x y',
    '$NOPE',
    '${',
    '|',
    '>',
    ':',
    '- ',
    '\t',
    '\0',
    '\u202e',
    '<<: *log',
    '__proto__',
    '😀',
    '?',
    '%',
  ),
  fc.string({ maxLength: 5 }),
);
const edit = fc.tuple(fc.nat(words.length - 1), fc.constantFrom('replace', 'insert', 'letter'), replacement);

function mutate(edits: readonly [number, string, string][]): string {
  let text = VALID;
  // From the end, so that the offsets of earlier words stay valid.
  for (const [index, kind, by] of edits.toSorted((a, b) => b[0] - a[0])) {
    const { start, text: word } = words[index] ?? { start: 0, text: '' };
    const cut = kind === 'replace' ? word.length : kind === 'letter' ? 1 : 0;
    text = text.slice(0, start) + by + text.slice(start + cut);
  }
  return text;
}

const FORMATS: readonly DiagnosticFormat[] = ['text', 'concise', 'json', 'github', 'sarif'];

describe('damaged configurations', () => {
  it('the sample configuration is valid before mutation', () => {
    const { source, diagnostics } = YamlSource.parse(VALID, 'x.yaml', {});
    expect([...diagnostics, ...checkSchema(sampleSchema, source).diagnostics]).toEqual([]);
  });

  it('a mutated configuration gives located problems or a value, never an exception', () => {
    const edits = fc.array(edit, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(edits, (list) => {
        const text = mutate(list);
        const { source, diagnostics: syntax } = YamlSource.parse(text, 'x.yaml', {});
        const { value, diagnostics: schema } = checkSchema(sampleSchema, source);
        const diagnostics = [...syntax, ...schema];
        if (schema.length > 0) expect(value).toBeUndefined();
        if (value === undefined) expect(diagnostics).not.toEqual([]);
        for (const { range, message } of diagnostics) {
          expect(message).not.toMatch(/^$|undefined|\[object|Invalid input/);
          expect(range.start.offset).toBeLessThanOrEqual(range.end.offset);
          expect(range.end.offset).toBeLessThanOrEqual(text.length);
          const before = text.slice(0, range.start.offset).split('\n');
          expect([range.start.line, range.start.column]).toEqual([
            before.length,
            (before.at(-1)?.length ?? 0) + 1,
          ]);
        }
        const sources = new Map([['x.yaml', diagnosticSource(source, sampleSchema)]]);
        for (const format of FORMATS) {
          const shown = renderDiagnostics(diagnostics, sources, { format, color: false, width: 80 });
          expect(shown).not.toMatch(/(?!\n)\p{Cc}|\u202e/u);
        }
      }),
      { numRuns: repeats(150, 1_500) },
    );
  });
});
