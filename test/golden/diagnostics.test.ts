import { describe } from 'vitest';
import { type DiagnosticFormat, renderDiagnostics } from '../../src/cli/render/diagnostics.ts';
import type { Diagnostic, Path } from '../../src/core/diagnostic.ts';
import { diagnosticSource } from '../../src/core/render/source.ts';
import { VERSION } from '../../src/core/version.ts';
import { YamlSource } from '../../src/core/yaml/source.ts';
import { checkSchema } from '../../src/server/config/reading/check.ts';
import { runGoldenCases } from './case-file.ts';
import { sampleSchema } from './diagnostics-schema.ts';

interface Settings {
  readonly format?: DiagnosticFormat;
  readonly width?: number;
  readonly ascii?: boolean;
  readonly color?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Adds warnings about literal secrets and errors about `=` in rules, as later stages of the real check do. */
  readonly lint?: boolean;
}

function lint(source: YamlSource): Diagnostic[] {
  const found: Diagnostic[] = [];
  const walk = (value: unknown, path: Path): void => {
    if (typeof value === 'string') {
      const at = path.includes('rules') ? value.search(/(?<!=)=(?!=)/) : -1;
      if (at !== -1) found.push(assignment(source, path, at));
      if (path.at(-1) === 'apiKey') found.push(literalKey(source, path));
    } else if (value !== null && typeof value === 'object') {
      for (const [key, child] of Object.entries(value))
        walk(child, [...path, Array.isArray(value) ? Number(key) : key]);
    }
  };
  walk(source.value, []);
  return found;
}

function assignment(source: YamlSource, path: Path, at: number): Diagnostic {
  return {
    severity: 'error',
    code: 'AGW0201',
    message: 'invalid CEL expression: unexpected `=`',
    file: source.file,
    path,
    range: source.rangeInside(path, at, at + 1),
    label: 'assignment is not allowed here',
    help: 'to compare two values, use `==`',
  };
}

function literalKey(source: YamlSource, path: Path): Diagnostic {
  return {
    severity: 'warning',
    code: 'AGW0302',
    message: 'literal provider key in the configuration file',
    file: source.file,
    path,
    range: source.valueRange(path),
    label: 'this secret is readable by anyone who can read the file',
    help: 'read it from the environment: `apiKey: $PROVIDER_API_KEY`',
  };
}

describe('golden diagnostics', () => {
  runGoldenCases<Settings>(new URL('diagnostics/', import.meta.url), ({ settings, input }) => {
    const { format = 'text', width = 100, ascii = false, color = false, env = {} } = settings;
    // Escapes in the case file keep it readable: \e for ESC, \t for a tab.
    const { source, diagnostics } = YamlSource.parse(input, 'gateway.yaml', env);
    const all = [
      ...diagnostics,
      ...checkSchema(sampleSchema, source).diagnostics,
      ...(settings.lint ? lint(source) : []),
    ];
    const sources = new Map([[source.file, diagnosticSource(source, sampleSchema)]]);
    const sorted = all.toSorted((a, b) => a.range.start.offset - b.range.start.offset);
    const text = renderDiagnostics(sorted, sources, { format, width, ascii, color });
    return (text === '' ? 'no problems' : text)
      .replaceAll(`"${VERSION}"`, '"<version>"')
      .replaceAll('\x1b', '\\e');
  });
});
