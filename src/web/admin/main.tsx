import { start } from '../shared/start.tsx';
import { Frame } from './frame.tsx';
import { pages } from './pages.ts';
import './admin.css';

start('agctl', pages, Frame);
