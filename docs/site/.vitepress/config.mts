import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';

const docs = join(import.meta.dirname, '../..');
const titleOf = (file: string): string =>
  /^# (?:\[?\d{4}\]? )?(.+)$/m.exec(readFileSync(join(docs, file), 'utf8'))?.[1]?.replaceAll('`', '') ?? file;
const item = (file: string): { text: string; link: string } => ({
  text: titleOf(file),
  link: `/${file.replace(/(?:README|index)?\.md$/, '')}`,
});
const pages = (...names: string[]): { text: string; link: string }[] =>
  names.map((name) => item(`${name}.md`));
const commands = readdirSync(join(docs, '../man')).flatMap((name) =>
  name.endsWith('.1') ? [name.slice(0, -2)] : [],
);
const reference = (name: string, text: string): { text: string; link: string } => ({
  text,
  link: `/reference/${name}`,
});
const guides = readdirSync(join(docs, 'guides')).filter((name) => name !== 'README.md');

/** The documentation as a site. Files outside of docs/ are copied by scripts/docs.mjs, too, so that links to them work. */
// biome-ignore lint/style/noDefaultExport: VitePress reads it.
export default defineConfig({
  title: 'agctl',
  description: 'One authenticated, observable endpoint in front of MCP servers and LLM providers.',
  srcDir: 'pages',
  outDir: '../../dist/site',
  cleanUrls: true,
  metaChunk: true,
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    sidebar: [
      { text: 'Start', items: pages('first-steps', 'concepts', 'troubleshooting', 'comparison') },
      {
        text: 'Guides',
        items: [{ text: 'Overview', link: '/guides/' }, ...guides.map((name) => item(`guides/${name}`))],
      },
      { text: 'MCP', items: pages('mcp-sessions', 'mcp-tools', 'stdio', 'openapi') },
      { text: 'LLM', items: pages('llm', 'llm-providers', 'llm-translation', 'guardrails', 'budgets') },
      {
        text: 'Gateway',
        items: pages(
          'routing',
          'traffic',
          'listeners',
          'sign-in',
          'reload',
          'workers',
          'library',
          'library-testing',
          'policies',
        ),
      },
      {
        text: 'Operation',
        items: pages(
          'deploy',
          'upgrades',
          'rotation',
          'scale',
          'observability',
          'record',
          'trace',
          'ui',
          'admin',
          'security',
          'benchmarks',
        ),
      },
      { text: 'Memory', items: pages('memory') },
      {
        text: 'Reference',
        items: [
          reference('config', 'Configuration'),
          reference('expressions', 'Expressions'),
          reference('errors', 'Errors and codes'),
          reference('metrics', 'Metrics'),
          {
            text: 'Commands',
            collapsed: true,
            items: commands.map((name) => reference(name, name.replaceAll('-', ' '))),
          },
          ...pages('library-api', 'compatibility', 'dependencies', 'decisions/README'),
        ],
      },
    ],
  },
});
