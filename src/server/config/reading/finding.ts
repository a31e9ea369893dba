import type { z } from 'zod';
import type { DiagnosticCode, Path } from '../../../core/diagnostic.ts';
import { joinWords } from '../../../core/schema/describe-types.ts';
import type { Remedy } from './fix.ts';
import type { CheckMessage } from './value-messages.ts';

export type Issue = z.core.$ZodIssue;

/** Readers look at the first few findings only; without a bound, a hostile file would have one per key. */
export const MAX_FINDINGS = 200;

/** One problem before it has a place in the text. */
export interface Finding {
  readonly code: DiagnosticCode;
  readonly path: Path;
  readonly at: 'key' | 'value';
  readonly message: string;
  readonly label?: string | undefined;
  readonly help?: string | undefined;
  readonly notes?: readonly string[] | undefined;
  /** For an unknown key: the path of the key that was probably meant. */
  readonly meant?: Path | undefined;
  readonly remedy?: Remedy | undefined;
  /** Set if `path` is missing; the finding is then located at the mapping that should contain it. */
  readonly missing?: boolean;
}

/** Fields that a refinement may set on its issue, as `params` of a custom issue. */
export interface IssueParams {
  readonly code?: DiagnosticCode;
  readonly help?: string;
  readonly label?: string;
  readonly notes?: readonly string[];
  readonly at?: 'key' | 'value';
}

/** The message that the author of a check wrote needs nothing added. */
export function checkFinding(path: Path, issue: Issue, words: CheckMessage): Finding {
  return {
    code: 'AGW0104',
    path,
    at: 'value',
    ...(issue.message === '' ? words : { message: issue.message, help: words.help }),
  };
}

export function custom(path: Path, message: string, params: IssueParams): Finding {
  const { code = 'AGW0104', at = 'value', label, help, notes } = params;
  return { code, path, at, message: message || 'this value is not allowed', label, help, notes };
}

export function oneOf(path: Path, keys: readonly string[], message: string): Finding {
  const names = joinWords(keys.map((key) => `\`${key}\``));
  return {
    code: 'AGW0105',
    path,
    at: 'key',
    message: message || `one of ${names} is missing`,
    label: `${names} is required here`,
  };
}

export function exclusive(path: Path, key: string, other: string): Finding {
  return {
    code: 'AGW0105',
    path: [...path, other],
    at: 'key',
    message: `\`${key}\` and \`${other}\` are mutually exclusive`,
    help: 'keep one of the two',
  };
}
