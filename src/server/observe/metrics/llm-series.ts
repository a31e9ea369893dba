import { LIMITS } from '../../../core/limits.ts';
import type { LlmCall } from '../../llm/call.ts';
import type { Families } from './families.ts';
import type { CounterSeries, HistogramSeries } from './family.ts';

type TokenType = 'input' | 'output' | 'input_cache_read' | 'input_cache_write';

/** The series that calls with the same labels add to; each is made when it is first added to. */
class LlmSeries {
  readonly #families: Families;
  readonly #labels: readonly string[];
  readonly #duration: HistogramSeries;
  readonly #lookups = new Map<string, CounterSeries>();
  readonly #tokens = new Map<TokenType, HistogramSeries>();

  constructor(families: Families, labels: readonly string[]) {
    this.#families = families;
    this.#labels = labels;
    this.#duration = families.modelDuration.with(labels);
  }

  record({ usage, cost, streaming, firstTokenAfter, lastTokenAfter }: LlmCall, seconds: number): void {
    const families = this.#families;
    const labels = this.#labels;
    this.#duration.observe(seconds);
    if (cost !== undefined) this.#lookup(cost.status).value += 1;
    if (cost?.parts?.['total'] !== undefined) families.cost.with(labels).add(cost.parts['total']);
    if (usage !== undefined) {
      this.#token('input').observe(usage.input);
      this.#token('output').observe(usage.output);
      if (usage.cachedInput !== undefined) this.#token('input_cache_read').observe(usage.cachedInput);
      if (usage.cacheWrite !== undefined) this.#token('input_cache_write').observe(usage.cacheWrite);
    }
    if (!streaming || firstTokenAfter === undefined) return;
    families.firstToken.with(labels).observe(firstTokenAfter / 1000);
    if (lastTokenAfter !== undefined && usage !== undefined && usage.output > 0)
      families.perOutputToken.with(labels).observe((lastTokenAfter - firstTokenAfter) / usage.output / 1000);
  }

  #lookup(status: string): CounterSeries {
    const known = this.#lookups.get(status);
    if (known !== undefined) return known;
    const made = this.#families.catalogLookups.with([status, ...this.#labels]);
    this.#lookups.set(status, made);
    return made;
  }

  #token(type: TokenType): HistogramSeries {
    const known = this.#tokens.get(type);
    if (known !== undefined) return known;
    const made = this.#families.tokenUsage.with([type, ...this.#labels]);
    this.#tokens.set(type, made);
    return made;
  }
}

/** Finds the series of LLM calls by their labels, in one look-up instead of one for each family. */
export class LlmSeriesByLabels {
  readonly #families: Families;
  readonly #known = new Map<string, LlmSeries>();

  constructor(families: Families) {
    this.#families = families;
  }

  /** `labels`: operation, provider, models, then those of the route. */
  with(labels: readonly string[]): LlmSeries {
    const key = labels.join('\u0000');
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = new LlmSeries(this.#families, labels);
    // The families take what goes beyond as one series; nothing is gained by keeping the way to it.
    if (this.#known.size < LIMITS.metricSeries) this.#known.set(key, made);
    return made;
  }
}
