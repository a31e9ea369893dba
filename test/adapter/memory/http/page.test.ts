import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../kit/folder.ts';
import { memoryBackend, writeFiles } from '../../../kit/memory-backend.ts';
import { send } from '../../../kit/send.ts';

test('the built dashboard is served as one document for every page, with cacheable files', async () => {
  await using folder = await temporaryFolder();
  const pages = join(folder.path, 'memory');
  writeFiles(pages, { 'index.html': '<!doctype html>built', 'assets/index-abc.js': 'let x;' });
  writeFiles(folder.path, { 'secret.txt': 'secret' });
  await using backend = await memoryBackend({ pages, key: 'k' });
  for (const path of ['/ui', '/ui/', '/ui/graph', '/ui/sessions/x?turn=1', '/']) {
    const { status, headers, body } = await backend.get(path);
    expect([status, headers.get('content-type'), body]).toEqual([
      200,
      expect.stringContaining('text/html'),
      '<!doctype html>built',
    ]);
    expect(headers.get('cache-control')).toBe('no-cache');
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'self'; frame-ancestors 'none'/);
  }
  const file = await backend.get('/ui/assets/index-abc.js');
  expect([file.status, file.body]).toEqual([200, 'let x;']);
  expect(file.headers.get('content-type')).toContain('javascript');
  expect(file.headers.get('cache-control')).toContain('immutable');
  expect((await backend.get('/ui/assets/none.js')).status).toBe(404);
  for (const target of [
    '/ui/assets/../../secret.txt',
    '/ui/assets/%2e%2e/%2e%2e/secret.txt',
    '/ui/../secret.txt',
  ]) {
    expect((await send(backend.url, { target })).text).not.toContain('secret');
  }
});

test('without a built dashboard a page says so and links to the API', async () => {
  await using backend = await memoryBackend({ pages: '/nowhere' });
  const { status, body } = await backend.get('/ui/');
  expect([status, body]).toEqual([200, expect.stringContaining('href="/api/memory/stats"')]);
});
