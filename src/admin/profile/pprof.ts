import { fileURLToPath } from 'node:url';
import { Location, Function as PprofFunction, Profile, Sample, StringTable, ValueType } from 'pprof-format';
import type { CallFrame, Stack } from '../../server/workers/profile/samples.ts';

interface Unit {
  readonly type: string;
  readonly unit: string;
}

export interface PprofOptions {
  /** Unit of each value of a sample, in order; tools display the last one first. */
  readonly values: readonly Unit[];
  readonly period: Unit & { readonly every: number };
  /** Start in ms since 1970, and duration in ms. */
  readonly startedAt: number;
  readonly duration: number;
}

/**
 * Collects samples into a pprof profile (`perftools.profiles.Profile` of github.com/google/pprof, proto/profile.proto).
 * A profile contains names of functions and files, but no values of the program.
 */
export class PprofBuilder {
  readonly #strings = new StringTable();
  readonly #functions = new Map<string, PprofFunction>();
  readonly #locations = new Map<string, Location>();
  readonly #samples = new Map<string, Sample>();

  /** Adds a stack with its values; equal stacks are merged into one sample. */
  add(stack: Stack, values: readonly number[]): void {
    const locationId = stack.map((frame) => this.#location(frame));
    const key = locationId.join(' ');
    const known = this.#samples.get(key);
    if (known === undefined) this.#samples.set(key, new Sample({ locationId, value: [...values] }));
    else known.value = known.value.map((value, index) => Number(value) + (values[index] ?? 0));
  }

  encode({ values, period, startedAt, duration }: PprofOptions): Promise<Uint8Array> {
    const typeOf = ({ type, unit }: Unit): ValueType =>
      new ValueType({ type: this.#strings.dedup(type), unit: this.#strings.dedup(unit) });
    const profile = new Profile({
      sampleType: values.map(typeOf),
      sample: [...this.#samples.values()],
      location: [...this.#locations.values()],
      function: [...this.#functions.values()],
      periodType: typeOf(period),
      period: period.every,
      timeNanos: BigInt(Math.round(startedAt)) * 1_000_000n,
      durationNanos: BigInt(Math.round(duration)) * 1_000_000n,
      stringTable: this.#strings,
    });
    return profile.encodeAsync();
  }

  #location(frame: CallFrame): number {
    const key = `${frame.scriptId}:${frame.url}:${frame.lineNumber}:${frame.functionName}`;
    let location = this.#locations.get(key);
    if (location === undefined) {
      location = new Location({
        id: this.#locations.size + 1,
        line: [{ functionId: this.#function(frame), line: frame.lineNumber + 1 }],
      });
      this.#locations.set(key, location);
    }
    return Number(location.id);
  }

  #function({ functionName, url, lineNumber, scriptId }: CallFrame): number {
    const key = `${scriptId}:${lineNumber}:${functionName}`;
    let found = this.#functions.get(key);
    if (found === undefined) {
      const name = this.#strings.dedup(functionName === '' ? '(anonymous)' : functionName);
      found = new PprofFunction({
        id: this.#functions.size + 1,
        name,
        systemName: name,
        filename: this.#strings.dedup(shownFile(url)),
        startLine: lineNumber + 1,
      });
      this.#functions.set(key, found);
    }
    return Number(found.id);
  }
}

function shownFile(url: string): string {
  return url.startsWith('file:') ? fileURLToPath(url) : url;
}
