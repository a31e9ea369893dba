import { LIMITS } from '../../../core/limits.ts';
import { OVERFLOW, UNKNOWN } from './family.ts';

/**
 * Values of a label that come from outside: names of models, tools, resources. What is `listed` is always a label;
 * any other new one is taken up only where the
 * request succeeded, so that nobody fills the place with inventions, and only up to a number.
 */
export class LabelValues {
  readonly #known = new Set<string>();
  readonly #listed: ReadonlySet<string>;

  constructor(listed: ReadonlySet<string> = NOTHING) {
    this.#listed = listed;
  }

  /** Without those of the list. */
  get size(): number {
    return this.#known.size;
  }

  /** The value as a label, or `unknown` or `overflow` in its place. */
  of(value: string | undefined, succeeded: boolean): string {
    if (value === undefined || value === '') return UNKNOWN;
    if (this.#listed.has(value)) return value;
    const label =
      value.length > LIMITS.metricLabelLength ? `${value.slice(0, LIMITS.metricLabelLength)}…` : value;
    if (this.#known.has(label)) return label;
    if (!succeeded) return UNKNOWN;
    if (this.#known.size >= LIMITS.metricLabelValues) return OVERFLOW;
    this.#known.add(label);
    return label;
  }
}

const NOTHING: ReadonlySet<string> = new Set();
