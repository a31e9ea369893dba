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
    path: '/browser',
    title: 'Memory browser',
    key: 'b',
    load: async () => (await import('./pages/browser.tsx')).Browser,
  },
  {
    path: '/graph',
    title: 'Graph topology',
    key: 't',
    load: async () => (await import('./pages/graph.tsx')).Graph,
  },
  {
    path: '/playground',
    title: 'RAG playground',
    key: 'p',
    load: async () => (await import('./pages/playground.tsx')).Playground,
  },
  {
    path: '/replay',
    title: 'Episodic replay',
    key: 'e',
    load: async () => (await import('./pages/replay.tsx')).Replay,
  },
  {
    path: '/forget',
    title: 'Forget',
    key: 'f',
    load: async () => (await import('./pages/forget.tsx')).Forget,
  },
  {
    path: '/namespaces',
    title: 'Namespaces',
    key: 'n',
    load: async () => (await import('./pages/namespaces.tsx')).Namespaces,
  },
];
