import { elementsOf, membersOf, shownValue } from '../../../core/foreign.ts';
import { LostParts } from '../lost-parts.ts';
import { CALLBACKS_THAT_CHECK, isCap, NO_LIMIT, REASONS } from './reasons.ts';

/** What has no counterpart. Models with the same key and reason are one line. */
export class Lost extends LostParts {
  override add(key: string, reason: string, { owner = '', isWarning = isCap(key) } = {}): void {
    super.add(key, reason, { owner, isWarning });
  }

  /** Every member of a section that is not `known`. Without a value, or switched off, it does nothing in LiteLLM either. */
  addRest(section: unknown, prefix: string, known: readonly string[], owner?: string): void {
    for (const [key, value] of Object.entries(membersOf(section))) {
      const isOff = value === null || (value === false && Object.hasOwn(REASONS, key));
      if (known.includes(key) || isOff) continue;
      const callbacks = /callbacks?$/.test(key) ? elementsOf(value).map(shownValue) : [];
      const checks = callbacks.filter((name) => CALLBACKS_THAT_CHECK.test(name));
      for (const name of checks)
        this.add(`${prefix}${key}: ${name}`, 'guardrails are set as `llm.guardrails`', { isWarning: true });
      if (checks.length > 0 && checks.length === callbacks.length) continue;
      const isWarning = isCap(key) || hasCap(value);
      this.add(`${prefix}${key}`, reasonFor(key, isWarning), { owner: owner ?? '', isWarning });
    }
  }
}

/** Whether a value has a limit somewhere inside, such as `default_team_settings: [{ max_budget: 1 }]`. */
function hasCap(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasCap);
  return Object.entries(membersOf(value)).some(([key, inner]) => isCap(key) || hasCap(inner));
}

function reasonFor(key: string, isLimit: boolean): string {
  if (Object.hasOwn(REASONS, key)) return REASONS[key] ?? '';
  return isLimit ? NO_LIMIT : 'no counterpart, or set it by hand';
}
