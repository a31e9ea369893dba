import { describe, test } from 'vitest';
import { expectReport, TARGETS } from '../report.ts';

const program = [process.env['GO_SDK'] as string];

describe.each(TARGETS)('$target', (target) => {
  test.each(['2025-06-18', '2025-11-25', '2026-07-28'])(
    'the official Go SDK can use everything at revision %s',
    (revision) => expectReport(program, revision, target),
  );
});
