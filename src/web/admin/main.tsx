// The first script of the application: requests the data and the page for the address while the rest is still loading.
import { prefetch } from '../shared/api.ts';
import { loadFirst } from '../shared/page.ts';
import { currentPath } from '../shared/router.tsx';
import { applyTheme } from '../shared/theme.ts';
import { OVERVIEW } from './model/paths.ts';
import { followRequestsWhileSeen } from './model/requests.ts';
import { pages } from './pages.ts';
import '../shared/theme.css';
import './admin.css';

applyTheme();
if (currentPath() === '/') prefetch(OVERVIEW);
followRequestsWhileSeen();
void loadFirst(pages);
void import('./app.tsx');
