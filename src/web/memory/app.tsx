import { start } from '../shared/shell.tsx';
import { settleToasts } from '../shared/toasts.tsx';
import { KeyGate } from './key-gate.tsx';
import { Tools } from './namespace-select.tsx';
import { pages } from './pages.ts';

// What was announced as deleted is deleted, also if the tab is closed before the time to undo has passed.
addEventListener('pagehide', settleToasts);
void start({ name: 'agctl memory', pages, Gate: KeyGate, Tools });
