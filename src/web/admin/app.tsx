import { start } from '../shared/start.tsx';
import { Frame } from './frame.tsx';
import { pages } from './pages.ts';

void start('agctl', pages, Frame);
