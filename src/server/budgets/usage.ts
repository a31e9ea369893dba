import {
  type BudgetLimit,
  type BudgetUnit,
  budgetText,
  parseBudget,
  usdText,
  windowEnd,
  windowStart,
} from '../../core/budget.ts';
import type { ShownBudget, ShownKey } from '../../core/virtual-key.ts';
import { type Claim, partsOfCounter } from './counter.ts';
import { claimsOfKey, KEY_PREFIX, type Spending } from './spending.ts';
import type { CounterRow } from './spending-store.ts';
import type { VirtualKey } from './virtual-key.ts';

/** A budget of the configuration, and what one of its subjects has used. */
export interface ShownSubject extends ShownBudget {
  readonly name: string;
  /** The value of `key`; absent if all calls share the budget, and for those that have no value. */
  readonly subject?: string;
}

/** Keys with what they have used in the current windows. Reads the database. */
export async function shownKeys(spending: Spending, keys: readonly VirtualKey[]): Promise<ShownKey[]> {
  const now = Date.now();
  const claims = keys.flatMap((key) => claimsOfKey(key));
  const use = await usageOf(spending, claims, now);
  let index = 0;
  return keys.map((key) => ({
    ...shownKey(key, now),
    budgets: key.budgets.flatMap((text) => {
      const limit = parseBudget(text);
      const used = use[index++];
      return limit === undefined || used === undefined ? [] : [shownBudget(limit, used, now)];
    }),
  }));
}

function shownKey(key: VirtualKey, now: number): Omit<ShownKey, 'budgets'> {
  const { id, name, hint, createdAt, expiresAt, revokedAt, allowedModels, metadata } = key;
  const isExpired = expiresAt !== undefined && expiresAt <= now;
  return {
    id,
    name,
    hint,
    state: revokedAt !== undefined ? 'revoked' : isExpired ? 'expired' : 'active',
    createdAt: new Date(createdAt).toISOString(),
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
    ...(revokedAt !== undefined && { revokedAt: new Date(revokedAt).toISOString() }),
    ...(allowedModels !== undefined && { allowedModels }),
    metadata,
  };
}

/** The subjects of these budgets that have used something in the current windows, up to `limit`. Reads the database. */
export async function shownSubjects(
  spending: Spending,
  budgets: readonly { readonly name: string; readonly limit: BudgetLimit }[],
  limit: number,
): Promise<ShownSubject[]> {
  const now = Date.now();
  const starts = new Set(budgets.map(({ limit: { window } }) => windowStart(window, now)));
  const rows = await spending.store.spent([...starts], limit);
  return rows.flatMap(({ counter, start, spent }): ShownSubject[] => {
    const parts = partsOfCounter(counter);
    if (parts === undefined || parts.budget.startsWith(KEY_PREFIX)) return [];
    const found = budgets.find(
      ({ name, limit: { unit, window } }) =>
        name === parts.budget &&
        unit === parts.unit &&
        window === parts.window &&
        start === windowStart(window, now),
    );
    if (found === undefined) return [];
    const open = spending.ledger.open(counter, start);
    const use = { spent: spent + (open?.unwritten ?? 0), reserved: open?.reserved ?? 0 };
    return [
      {
        name: found.name,
        ...(parts.subject !== '' && { subject: parts.subject }),
        ...shownBudget(found.limit, use, now),
      },
    ];
  });
}

interface Use {
  readonly spent: number;
  readonly reserved: number;
}

async function usageOf({ store, ledger }: Spending, claims: readonly Claim[], now: number): Promise<Use[]> {
  const rows = claims.map(
    ({ counter, window }): CounterRow => ({ counter, start: windowStart(window, now) }),
  );
  const totals = await store.totals(rows);
  return rows.map(({ counter, start }, index) => {
    const open = ledger.open(counter, start);
    return { spent: (totals[index] ?? 0) + (open?.unwritten ?? 0), reserved: open?.reserved ?? 0 };
  });
}

function shownBudget(limit: BudgetLimit, { spent, reserved }: Use, now: number): ShownBudget {
  const end = windowEnd(limit.window, windowStart(limit.window, now));
  return {
    limit: budgetText(limit),
    spent: shownAmount(limit.unit, spent),
    reserved: shownAmount(limit.unit, reserved),
    ...(end !== undefined && { resetsAt: new Date(end).toISOString() }),
  };
}

const shownAmount = (unit: BudgetUnit, amount: number): string | number =>
  unit === 'tokens' ? amount : usdText(amount);
