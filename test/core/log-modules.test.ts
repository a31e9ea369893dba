import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { LOG_MODULES } from '../../src/core/log-directives.ts';

const SOURCE = fileURLToPath(new URL('../../src/', import.meta.url));
const FILES = globSync(['server/**/*.ts', 'admin/**/*.ts', 'cli/commands/gateway-serve.ts'], { cwd: SOURCE });

test('the list of log modules equals the scopes used in log calls', () => {
  const scopes = FILES.flatMap((file) => {
    const text = readFileSync(`${SOURCE}${file}`, 'utf8');
    return [
      ...text.matchAll(/\blog\??\.(?:error|warn|info|debug|trace)\(\s*'([^']+)'/gi),
      ...text.matchAll(/(?:\bscope:|\btarget:|\breturn|\?) '((?:proxy|mcp|llm|telemetry)::[^']+|auth)'/g),
    ].map(([, scope]) => scope);
  });
  expect([...new Set([...scopes, 'llm', 'request'])].sort()).toEqual([...LOG_MODULES]);
});
