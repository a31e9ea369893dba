import type { Page } from '../shared/shell.tsx';
import { Cel } from './pages/cel.tsx';
import { Config } from './pages/config.tsx';
import { Llm } from './pages/llm.tsx';
import { Mcp } from './pages/mcp.tsx';
import { Overview } from './pages/overview.tsx';
import { Requests } from './pages/requests.tsx';
import { System } from './pages/system.tsx';
import { Trace } from './pages/trace.tsx';
import { Usage } from './pages/usage.tsx';

/** All pages, in the order of the navigation. */
export const pages: readonly Page[] = [
  { path: '/', title: 'Overview', key: 'o', Content: Overview },
  { path: '/requests', title: 'Requests', key: 'r', Content: Requests },
  { path: '/usage', title: 'Usage', key: 'u', Content: Usage },
  { path: '/trace', title: 'Trace', key: 't', Content: Trace },
  { path: '/config', title: 'Config', key: 'c', Content: Config },
  { path: '/cel', title: 'CEL', key: 'e', Content: Cel },
  { path: '/mcp', title: 'MCP', key: 'm', Content: Mcp },
  { path: '/llm', title: 'LLM', key: 'l', Content: Llm },
  { path: '/system', title: 'System', key: 's', Content: System },
];
