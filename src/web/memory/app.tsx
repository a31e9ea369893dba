import { start } from '../shared/shell.tsx';
import { KeyGate } from './key-gate.tsx';
import { pages } from './pages.ts';

void start('agctl memory', pages, KeyGate);
