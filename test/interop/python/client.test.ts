import { describe, test } from 'vitest';
import { expectReport, TARGETS } from '../report.ts';

const python = process.env['MCP_PYTHON'] as string;
const script = new URL('client.py', import.meta.url).pathname;

describe.each(['mcp', 'fastmcp'])('the Python client of %s', (library) => {
  describe.each(TARGETS)('$target', (target) => {
    test.each([
      ['legacy', '2025-11-25'],
      ['auto', '2026-07-28'],
      ['2026-07-28', '2026-07-28'],
    ])('the Python client in mode %s can use everything at revision %s', (mode, revision) =>
      expectReport([python, script, library], mode, target, { revision }),
    );
  });
});
