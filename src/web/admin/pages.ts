import type { Page } from '../shared/shell.tsx';
import { Overview } from './pages/overview.tsx';

/** All pages, in the order of the navigation. */
export const pages: readonly Page[] = [{ path: '/', title: 'Overview', key: 'o', Content: Overview }];
