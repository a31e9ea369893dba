// The memory dashboard, with the documents of this repository and a conversation about them.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { memoryBackend } from '../../test/kit/memory-backend.ts';
import { root } from '../run.mjs';

const CONVERSATION = [
  ['user', 'How do agents reach the memory?'],
  ['assistant', 'Through the gateway: it federates the memory adapter, which calls the backend over REST.'],
  ['user', 'And what happens to a document that I change?'],
  [
    'assistant',
    'The next sync reads it again. Content hashes are computed first, so documents that have not changed are neither embedded nor written.',
  ],
  ['system', 'docs sync: 8 unchanged, 1 updated'],
  ['user', 'Can I see that somewhere?'],
  ['assistant', 'On the Overview page, beside the Re-sync Docs button.'],
];

const GRAPH = {
  createEntities: [
    {
      name: 'Alice',
      entityType: 'person',
      observations: ['Leads the support team.', 'Prefers short answers with a link to the documentation.'],
    },
    { name: 'Support team', entityType: 'team', observations: ['Answers within a working day.'] },
    { name: 'Benchmarks', entityType: 'topic', observations: ['Alice asks for them every quarter.'] },
  ],
  createRelations: [
    { from: 'Alice', to: 'Support team', relationType: 'leads' },
    { from: 'Support team', to: 'Benchmarks', relationType: 'reads' },
  ],
};

export const memory = {
  async open() {
    // Without the pages that `npm run docs` generates.
    const files = globSync('docs/**/*.md', { cwd: root }).filter((path) => !path.startsWith('docs/site/'));
    // Links from a page to the others, as in real documentation.
    const links = files.map((path) => `- [${path}](${path.slice(5)})`);
    const docs = Object.fromEntries(
      files.map((path) => [path.slice(5), readFileSync(join(root, path), 'utf8')]),
    );
    docs['index.md'] = `# All pages\n\n${links.join('\n')}\n`;
    const backend = await memoryBackend({ docs, pages: join(root, 'dist/web/memory') });
    for (let session = 1; session <= 6; session += 1)
      for (const [role, content] of CONVERSATION.slice(0, session + 1))
        await backend.memory.store.appendTurn({
          sessionId: `support-${session}`,
          agentId: session % 2 === 0 ? 'helpdesk' : 'writer',
          role,
          content,
        });
    await backend.post('graph', GRAPH);
    for (const name of ['team-red', 'team-blue'])
      await backend.post('graph', GRAPH, { 'x-memory-namespace': name });
    return {
      url: backend.url,
      close: () => backend[Symbol.asyncDispose](),
      pages: [
        { name: 'overview', path: '/ui/', prepare: (page) => page.getByText('readiness').waitFor() },
        {
          name: 'browser',
          path: '/ui/browser?text=alice',
          async prepare(page) {
            await page.getByRole('link', { name: 'Alice' }).click();
            await page.getByText('2 observations').waitFor();
          },
        },
        {
          name: 'forget',
          path: '/ui/forget?about=alice',
          prepare: (page) => page.getByRole('button', { name: 'Forget all of this' }).waitFor(),
        },
        {
          name: 'namespaces',
          path: '/ui/namespaces',
          async prepare(page) {
            await page.getByRole('button', { name: 'team-red' }).click();
            await page.getByLabel('Type team-red').fill('team');
            await page.getByRole('row', { name: 'entity 3' }).waitFor();
          },
        },
        {
          name: 'turns',
          path: '/ui/replay?text=documents',
          prepare: (page) => page.getByText('newest first').waitFor(),
        },
        {
          name: 'graph',
          path: '/ui/graph',
          async prepare(page) {
            await page.locator('.graph[data-settled=true]').waitFor();
            await page.locator('.graph').focus();
            await page.keyboard.press('ArrowRight');
            await page.getByText('Metadata').waitFor();
            await page.evaluate(() => scrollTo(0, 0));
          },
        },
        {
          name: 'playground',
          path: '/ui/playground',
          async prepare(page) {
            await page.getByLabel('Query').fill('which port does the memory backend listen on');
            await page.keyboard.press('Enter');
            await page.locator('.result summary').first().click();
          },
        },
        {
          name: 'replay',
          path: '/ui/replay?session=support-6&turn=4',
          prepare: (page) => page.getByText('Turn 4 of').waitFor(),
        },
      ],
    };
  },
};
