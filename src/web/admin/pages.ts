import type { Page } from '../shared/page.ts';

/** All pages, in navigation order. */
export const pages: readonly Page[] = [
  {
    path: '/',
    title: 'Overview',
    group: 'Observe',
    key: 'o',
    load: async () => (await import('./pages/overview.tsx')).Overview,
  },
  {
    path: '/requests',
    title: 'Requests',
    group: 'Observe',
    key: 'r',
    load: async () => (await import('./pages/requests.tsx')).Requests,
  },
  {
    path: '/usage',
    title: 'Usage',
    group: 'Observe',
    key: 'u',
    load: async () => (await import('./pages/usage.tsx')).Usage,
  },
  {
    path: '/trace',
    title: 'Trace',
    group: 'Observe',
    key: 't',
    load: async () => (await import('./pages/trace.tsx')).Trace,
  },
  {
    path: '/mcp',
    title: 'MCP',
    group: 'Try',
    key: 'm',
    load: async () => (await import('./pages/mcp.tsx')).Mcp,
  },
  {
    path: '/llm',
    title: 'LLM',
    group: 'Try',
    key: 'l',
    load: async () => (await import('./pages/llm.tsx')).Llm,
  },
  {
    path: '/cel',
    title: 'CEL',
    group: 'Try',
    key: 'e',
    load: async () => (await import('./pages/cel.tsx')).Cel,
  },
  {
    path: '/auth',
    title: 'Sign-in',
    group: 'Try',
    key: 'a',
    load: async () => (await import('./pages/auth.tsx')).Auth,
  },
  {
    path: '/connect',
    title: 'Connect',
    group: 'Manage',
    key: 'n',
    load: async () => (await import('./pages/connect.tsx')).Connect,
  },
  {
    path: '/config',
    title: 'Config',
    group: 'Manage',
    key: 'c',
    load: async () => (await import('./pages/config.tsx')).Config,
  },
  {
    path: '/system',
    title: 'System',
    group: 'Manage',
    key: 's',
    load: async () => (await import('./pages/system.tsx')).System,
  },
];
