import type { ReactNode } from 'react';
import { Command } from '../../shared/problem.tsx';
import { Link } from '../../shared/router.tsx';

/** Shown where a page needs MCP servers or models: what to add to the configuration. */
export function NoEndpoint({ kind }: { readonly kind: 'mcp' | 'llm' }): ReactNode {
  return (
    <section className="panel">
      <p>
        {kind === 'mcp'
          ? 'No route of this gateway leads to an MCP server. Add one to the configuration:'
          : 'This gateway has no models. Add one to the configuration; this one needs no key:'}
      </p>
      <Command text={EXAMPLES[kind]} />
      <p>
        <Link to="/config">Open the configuration</Link>
      </p>
    </section>
  );
}

const EXAMPLES = {
  mcp: `mcp:
  targets:
    - name: everything
      stdio: {cmd: npx, args: ['-y', '@modelcontextprotocol/server-everything']}`,
  llm: `llm:
  models:
    - name: '*'
      provider: echo`,
};
