import { expect, test } from 'vitest';
import { plainText } from '../../src/web/memory/playground/plain-text.ts';

test('results of the memory playground are shown without the marks of Markdown', () => {
  const markdown = [
    '# Ports & hosts',
    'The **backend**\nlistens on `3006`, see [the _guide_](guide.md) <b>now</b>.',
    '- one\n  - inner\n- two',
    '3. three',
    '| Key | Value |\n|---|---|\n| `a` | 1 < 2 |',
    '```sh\nagctl serve # now\n```',
    '> quoted',
    '---',
  ].join('\n\n');
  expect(plainText(markdown).split('\n')).toEqual([
    'Ports & hosts',
    'The backend listens on 3006, see the guide <b>now</b>.',
    '• one',
    '  • inner',
    '• two',
    '3. three',
    'Key | Value',
    'a | 1 < 2',
    'agctl serve # now',
    'quoted',
  ]);
});
