import { existsSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { tool } from './tools.ts';

const ANALYZE = '/usr/bin/systemd-analyze';
const UNIT = 'systemd/agctl.service';

describe.skipIf(!existsSync(ANALYZE))('the systemd unit', () => {
  test('systemd-analyze verify has no complaint', async () => {
    // The manual pages are those of an installed package.
    const { code, text } = await tool(ANALYZE, ['verify', '--man=no', UNIT]);
    expect([code, text]).toEqual([0, '']);
  });

  test('systemd-analyze security rates the exposure of the unit at most 1.5 of 10', async () => {
    const { code, text } = await tool(ANALYZE, ['security', '--offline=true', '--threshold=15', UNIT]);
    expect(code, text).toBe(0);
  });
});
