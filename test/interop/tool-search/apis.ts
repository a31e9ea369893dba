import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { Client, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { serve } from '../../kit/process.ts';

// Gateways whose tools are the operations of real APIs. Nothing calls them: their hosts refuse connections.

/**
 * Parts of GitHub's API, as categories of its documentation or as `category/subcategory`. They have no operation in common: a
 * search is tuned on `dev` and judged on `heldOut`.
 */
const GITHUB = {
  heldOut: [
    'actions/artifacts',
    'actions/workflow-jobs',
    'actions/workflow-runs',
    'actions/workflows',
    'branches/branches',
    'collaborators',
    'commits',
    'git',
    'issues',
    'pulls',
    'releases',
    'repos/contents',
    'repos/forks',
    'repos/repos',
    'search',
  ],
  dev: [
    'activity/notifications',
    'activity/starring',
    'activity/watching',
    'code-scanning',
    'codespaces/codespaces',
    'gists',
    'orgs/members',
    'orgs/orgs',
    'orgs/webhooks',
    'packages',
    'projects',
    'teams',
    'users/emails',
    'users/followers',
    'users/keys',
  ],
} as const;

/** A part of the tools: `heldOut` has those of Figma and Notion too. */
export type Selection = keyof typeof GITHUB;

const operation = z.looseObject({
  'x-github': z.object({ category: z.string(), subcategory: z.string().nullable() }),
});
const document = z.object({
  openapi: z.string(),
  info: z.unknown(),
  servers: z.unknown(),
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.unknown(),
});

/** The document of GitHub's API with the operations of these parts. */
function github(parts: readonly string[]): object {
  const { paths, ...rest } = document.parse(
    JSON.parse(readFileSync(installed('@octokit/openapi/generated/api.github.com.json'), 'utf8')),
  );
  const isWanted = ({ 'x-github': { category, subcategory } }: z.output<typeof operation>): boolean =>
    parts.includes(category) || parts.includes(`${category}/${subcategory}`);
  const chosen = Object.entries(paths).map(([path, item]) => {
    const operations = Object.entries(item).filter(([, each]) => isWanted(each));
    return [path, Object.fromEntries(operations)] as const;
  });
  return { ...rest, paths: Object.fromEntries(chosen) };
}

const installed = (file: string): string => join(env['TOOL_SEARCH'] ?? '', 'node_modules', file);

const target = (name: string, file: string): object => ({
  name,
  openapi: { host: 'http://127.0.0.1:1', schema: { file } },
});

export interface ApisGateway extends AsyncDisposable {
  readonly url: string;
  /** A connected client. */
  readonly client: Client;
  /** All pages of the list of tools, as the client sees them. */
  tools(): Promise<Tool[]>;
}

/**
 * The built gateway with these tools, whose names begin with that of their API. `backend` has further members of the `mcp`
 * section, such as `toolSearch`.
 */
export async function startApis(selection: Selection, backend: object = {}): Promise<ApisGateway> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  const file = join(folder.path, 'github.json');
  writeFileSync(file, JSON.stringify(github(GITHUB[selection])));
  const targets = [target('github', file)];
  if (selection === 'heldOut')
    targets.push(
      target('figma', installed('@figma/rest-api-spec/openapi/openapi.yaml')),
      target('notion', installed('@notionhq/notion-mcp-server/scripts/notion-openapi.json')),
    );
  const config = mcpConfig(targets, { backend: { prefixMode: 'always', ...backend } });
  const { url } = stack.use(await serve(config));
  const client = new Client({ name: 'agent', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  stack.defer(() => client.close());
  const all = stack.move();
  return {
    url,
    client,
    tools: async () => {
      const tools: Tool[] = [];
      let cursor: string | undefined;
      do {
        const page = await client.listTools({ ...(cursor !== undefined && { cursor }) });
        tools.push(...page.tools);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return tools;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
