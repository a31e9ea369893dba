import { describe, test } from 'vitest';
import { expectReport, TARGETS } from '../report.ts';

const program = [process.env['MCP_GO'] as string, 'use'];

describe.each(TARGETS)('$target', (target) => {
  test.each(['2025-06-18', '2025-11-25', '2026-07-28'])(
    'the client of mcp-go can use everything at revision %s',
    (revision) => expectReport(program, revision, target),
  );
});
