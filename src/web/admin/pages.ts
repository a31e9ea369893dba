import type { Page } from '../shared/shell.tsx';
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
  { path: '/system', title: 'System', key: 's', Content: System },
];
