import { start } from '../shared/start.tsx';
import { pages } from './pages.ts';

start('agctl memory', pages);
