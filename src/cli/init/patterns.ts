import { re2 } from '../../server/kernel/re2.ts';

/** Whether a regular expression of another program is one of RE2, too. */
export function isPattern(rule: string): boolean {
  if (rule === '') return false;
  try {
    re2().compile(rule);
    return true;
  } catch {
    return false;
  }
}
