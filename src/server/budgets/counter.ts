import { type BudgetUnit, type BudgetWindow, isBudgetUnit, isBudgetWindow } from '../../core/budget.ts';
import { elementsOf, jsonIn } from '../../core/foreign.ts';

/** What a call takes from: one subject of a budget. A JSON value, because workers send it. */
export interface Claim {
  /** Names the counter in the store: `counterName`. */
  readonly counter: string;
  readonly unit: BudgetUnit;
  readonly window: BudgetWindow;
  readonly limit: number;
  /** The counter that the last call used, in the process that has the ledger. */
  found?: Counter;
}

/** Tokens, and money in 10^-9 USD. */
export type Amounts = Readonly<Record<BudgetUnit, number>>;

/** A counter of one window. Amounts in the unit of its budget. */
export interface Counter {
  readonly counter: string;
  readonly start: number;
  /** According to the store; undefined until it was read. */
  spent: number | undefined;
  /** When it was read, for `Batches.knows`. */
  era: number;
  /** Charged, and not yet written. */
  unwritten: number;
  /** By open calls, besides what these were charged. */
  reserved: number;
  /** Calls that are about to reserve. */
  waiting: number;
  /** Whether the ledger has another object for this counter, or none, from now on. */
  isForgotten: boolean;
}

/** The name of a counter in the store. */
export function counterName(
  budget: string,
  { unit, window }: Pick<Claim, 'unit' | 'window'>,
  subject: string,
): string {
  return JSON.stringify([budget, unit, window, subject]);
}

/** The parts of `counterName`; undefined if it is none. */
export function partsOfCounter(
  name: string,
): { budget: string; unit: BudgetUnit; window: BudgetWindow; subject: string } | undefined {
  const [budget, unit, window, subject] = elementsOf(jsonIn(name));
  if (typeof budget !== 'string' || typeof subject !== 'string') return undefined;
  if (!isBudgetUnit(unit) || !isBudgetWindow(window)) return undefined;
  return { budget, unit, window, subject };
}
