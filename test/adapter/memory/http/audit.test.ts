import { expect, test } from 'vitest';
import { memoryBackend } from '../../../kit/memory-backend.ts';

test('the log says who has deleted how much of the memory, whatever its levels, and not what', async () => {
  await using backend = await memoryBackend({
    key: 'main-key-canary',
    docs: { 'a.md': '# Zanzibar\n\nSecret plans.\n' },
  });
  const headers = { authorization: 'Bearer main-key-canary' };
  const chat = { sessionId: 's1', role: 'user', content: 'Zanzibar is where we meet' };
  expect((await backend.post('/api/memory/chat', chat, headers)).status).toBe(201);
  const audited = (): string[] => backend.log.filter((line) => line.includes('\taudit\t'));
  const preview = await backend.post('/api/memory/forget', { about: 'Zanzibar', preview: true }, headers);
  expect(preview.status).toBe(200);
  expect(audited()).toEqual([]);
  const token = (preview.body as { token: string }).token;
  await backend.post('/api/memory/forget', { about: 'Zanzibar', token }, { authorization: 'Bearer wrong' });
  expect(audited()).toEqual([]);
  expect((await backend.post('/api/memory/forget', { about: 'Zanzibar', token }, headers)).status).toBe(200);
  expect(audited()).toEqual([
    expect.stringMatching(
      /\tinfo\taudit\tmemory\.forget\toutcome="done" actor\.key="main" from="[^"]+" namespace="default" deleted=\{.*\}\n$/,
    ),
  ]);
  expect(audited().join('')).not.toMatch(/Zanzibar|canary/);
});
