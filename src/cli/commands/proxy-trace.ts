import { EXIT_CODES } from '../../core/exit-codes.ts';
import type { Run } from '../program.ts';

export const run: Run<object> = async () => EXIT_CODES.ok.code;
