import { start } from '../shared/start.tsx';
import './memory.css';
import { KeyGate } from './key-gate.tsx';
import { pages } from './pages.ts';

start('agctl memory', pages, KeyGate);
