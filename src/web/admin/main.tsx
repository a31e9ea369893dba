// The smallest part of the application: it asks for the data and the page that the address wants, while the rest is
// still on its way.
import { askEarly } from '../shared/api.ts';
import { loadFirst } from '../shared/page.ts';
import { currentPath } from '../shared/router.ts';
import { followRequestsWhileSeen } from './model/follow.ts';
import { OVERVIEW } from './model/paths.ts';
import { pages } from './pages.ts';
import '../shared/theme.css';
import './admin.css';

if (currentPath() === '/') askEarly(OVERVIEW);
followRequestsWhileSeen();
void loadFirst(pages);
void import('./app.tsx');
