import { LostParts } from '../lost-parts.ts';
import { isCap } from './reasons.ts';

/** What has no counterpart. Models with the same key and reason are one line. */
export class Lost extends LostParts {
  /** Parts of the file that have no line of their own, because the line of what contains them is enough: `model_list.0`. */
  readonly covered = new Set<string>();

  override add(key: string, reason: string, { owner = '', isWarning = isCap(key) } = {}): void {
    super.add(key, reason, { owner, isWarning });
  }
}
