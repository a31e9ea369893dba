import { LIMITS } from '../../../core/limits.ts';
import { OVERFLOW, UNKNOWN } from './family.ts';

/**
 * Bounds a label whose values are chosen by clients or providers: names of models, tools, resources. `listed` values
 * are always accepted. Any other new value is accepted only if the request succeeded, so that clients cannot exhaust
 * the limit with invented names, and only up to `LIMITS.metricLabelValues` values.
 */
export class LabelValues {
  readonly #known = new Set<string>();
  readonly #listed: ReadonlySet<string>;

  constructor(listed: ReadonlySet<string> = NO_VALUES) {
    this.#listed = listed;
  }

  /** The number of accepted values, without the listed ones. */
  get size(): number {
    return this.#known.size;
  }

  /** The label for a value, cut to `LIMITS.metricLabelLength` characters; `unknown` or `overflow` if not accepted. */
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

const NO_VALUES: ReadonlySet<string> = new Set();
