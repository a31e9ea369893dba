import { describe } from 'vitest';
import { renderDiagnostics } from '../../src/cli/render/diagnostics.ts';
import { diagnosticSource } from '../../src/core/render/source.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { configSchema } from '../../src/server/config/schema.ts';
import { runGoldenCases } from './case-file.ts';

interface Settings {
  readonly env?: Readonly<Record<string, string>>;
}

describe('golden configuration files', () => {
  runGoldenCases<Settings>(new URL('config/', import.meta.url), ({ settings, input }) => {
    const { config, diagnostics, source } = loadConfigText(input, 'gateway.yaml', settings.env ?? {});
    const sources = new Map([[source.file, diagnosticSource(source, configSchema)]]);
    const problems = renderDiagnostics(diagnostics, sources, { format: 'text', color: false, width: 100 });
    const value = config === undefined ? [] : [JSON.stringify(config, null, 2)];
    return [...(problems === '' ? [] : [problems]), ...value].join('\n\n');
  });
});
