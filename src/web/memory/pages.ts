import type { Page } from '../shared/shell.tsx';
import { Graph } from './pages/graph.tsx';
import { Overview } from './pages/overview.tsx';
import { Playground } from './pages/playground.tsx';
import { Replay } from './pages/replay.tsx';

/** All pages, in the order of the navigation. */
export const pages: readonly Page[] = [
  { path: '/', title: 'Overview', key: 'o', Content: Overview },
  { path: '/graph', title: 'Graph topology', key: 't', Content: Graph },
  { path: '/playground', title: 'RAG playground', key: 'p', Content: Playground },
  { path: '/replay', title: 'Episodic replay', key: 'e', Content: Replay },
];
