// The first script of the application: requests the data and the page for the address while the rest is still loading.
import { prefetch, sendAlways } from '../shared/api.ts';
import { loadFirst } from '../shared/page.ts';
import { currentPath } from '../shared/router.tsx';
import { applyTheme } from '../shared/theme.ts';
import { callerHeaders, storedKey } from './key.ts';
import { API } from './model.ts';
import { pages } from './pages.ts';
import '../shared/theme.css';
import './memory.css';
import './graph/graph.css';
import './browser/lists.css';
import './playground/results.css';
import './replay/replay.css';

applyTheme();
sendAlways(callerHeaders(storedKey()));
prefetch(`${API}/ingest/status`);
if (currentPath() === '/') prefetch(`${API}/stats`);
void loadFirst(pages);
void import('./app.tsx');
