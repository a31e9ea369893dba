import type { Counter, Histogram } from 'prom-client';
import type { LlmCall } from '../../llm/call.ts';
import type { Families } from './families.ts';

type TokenType = 'input' | 'output' | 'input_cache_read' | 'input_cache_write';

/** The series for LLM calls with the same labels. Each series is created on first use. */
export class LlmSeries {
  readonly #families: Families;
  readonly #labels: readonly string[];
  readonly #duration: Histogram;
  readonly #lookups = new Map<string, Counter>();
  readonly #tokens = new Map<TokenType, Histogram>();
  #cost: Counter | undefined;
  #firstToken: Histogram | undefined;
  #perOutputToken: Histogram | undefined;

  constructor(families: Families, labels: readonly string[]) {
    this.#families = families;
    this.#labels = labels;
    this.#duration = families.modelDuration.with(labels);
  }

  /** Records a finished call. `seconds` is the duration of the whole request. */
  record({ usage, cost, streaming, firstTokenAfter, lastTokenAfter }: LlmCall, seconds: number): void {
    const families = this.#families;
    const labels = this.#labels;
    this.#duration.observe(seconds);
    if (cost !== undefined) this.#lookup(cost.status).inc();
    if (cost?.parts?.['total'] !== undefined) {
      this.#cost ??= families.cost.with(labels);
      this.#cost.inc(cost.parts['total']);
    }
    if (usage !== undefined) {
      this.#token('input').observe(usage.input);
      this.#token('output').observe(usage.output);
      if (usage.cachedInput !== undefined) this.#token('input_cache_read').observe(usage.cachedInput);
      if (usage.cacheWrite !== undefined) this.#token('input_cache_write').observe(usage.cacheWrite);
    }
    if (!streaming || firstTokenAfter === undefined) return;
    this.#firstToken ??= families.firstToken.with(labels);
    this.#firstToken.observe(firstTokenAfter / 1000);
    if (lastTokenAfter === undefined || usage === undefined || usage.output === 0) return;
    this.#perOutputToken ??= families.perOutputToken.with(labels);
    this.#perOutputToken.observe((lastTokenAfter - firstTokenAfter) / usage.output / 1000);
  }

  #lookup(status: string): Counter {
    const known = this.#lookups.get(status);
    if (known !== undefined) return known;
    const made = this.#families.catalogLookups.with([status, ...this.#labels]);
    this.#lookups.set(status, made);
    return made;
  }

  #token(type: TokenType): Histogram {
    const known = this.#tokens.get(type);
    if (known !== undefined) return known;
    const made = this.#families.tokenUsage.with([type, ...this.#labels]);
    this.#tokens.set(type, made);
    return made;
  }
}
