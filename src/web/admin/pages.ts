import type { Page } from '../shared/page.ts';

/** All pages, in navigation order. */
export const pages: readonly Page[] = [
  {
    path: '/',
    title: 'Overview',
    key: 'o',
    load: async () => (await import('./pages/overview.tsx')).Overview,
  },
  {
    path: '/requests',
    title: 'Requests',
    key: 'r',
    load: async () => (await import('./pages/requests.tsx')).Requests,
  },
  {
    path: '/usage',
    title: 'Usage',
    key: 'u',
    load: async () => (await import('./pages/usage.tsx')).Usage,
  },
  {
    path: '/trace',
    title: 'Trace',
    key: 't',
    load: async () => (await import('./pages/trace.tsx')).Trace,
  },
  {
    path: '/config',
    title: 'Config',
    key: 'c',
    load: async () => (await import('./pages/config.tsx')).Config,
  },
  {
    path: '/cel',
    title: 'CEL',
    key: 'e',
    load: async () => (await import('./pages/cel.tsx')).Cel,
  },
  {
    path: '/mcp',
    title: 'MCP',
    key: 'm',
    load: async () => (await import('./pages/mcp.tsx')).Mcp,
  },
  {
    path: '/llm',
    title: 'LLM',
    key: 'l',
    load: async () => (await import('./pages/llm.tsx')).Llm,
  },
  {
    path: '/auth',
    title: 'Sign-in',
    key: 'a',
    load: async () => (await import('./pages/auth.tsx')).Auth,
  },
  {
    path: '/system',
    title: 'System',
    key: 's',
    load: async () => (await import('./pages/system.tsx')).System,
  },
];
