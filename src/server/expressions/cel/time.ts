import { CelEvaluationError } from './errors.ts';
import { CelObject } from './values.ts';

const SECOND = 1_000_000_000n;
// Bounds of google.protobuf.Timestamp (years 1 to 9999) and google.protobuf.Duration (10 000 years), in seconds.
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;
const LONGEST = 315_576_000_000n;

/** A point in time with nanoseconds, as CEL and RFC 3339 have it. */
export class Timestamp extends CelObject {
  readonly typeName = 'google.protobuf.Timestamp';
  /** Nanoseconds since 1970. */
  readonly nanos: bigint;

  /** Throws `overflow` outside of the years 1 to 9999. */
  constructor(nanos: bigint) {
    super();
    const seconds = floorDivide(nanos, SECOND);
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND) {
      throw new CelEvaluationError('overflow', 'a timestamp must be in the years 1 to 9999');
    }
    this.nanos = nanos;
  }

  get seconds(): bigint {
    return floorDivide(this.nanos, SECOND);
  }

  /** The same moment without the part below a millisecond. */
  get date(): Date {
    return new Date(Number(floorDivide(this.nanos, 1_000_000n)));
  }

  /** RFC 3339 in UTC, with as many digits of a second as it has. */
  override toString(): string {
    return `${this.date.toISOString().slice(0, 19)}${fraction(this.nanos - this.seconds * SECOND)}Z`;
  }
}

/** A span of time in nanoseconds. */
export class Duration extends CelObject {
  readonly typeName = 'google.protobuf.Duration';
  readonly nanos: bigint;

  /** Throws `overflow` beyond 10 000 years. */
  constructor(nanos: bigint) {
    super();
    const seconds = nanos / SECOND;
    if (seconds > LONGEST || seconds < -LONGEST)
      throw new CelEvaluationError('overflow', 'a duration is too long');
    this.nanos = nanos;
  }

  /** Seconds with an `s`, as protobuf's JSON form: `1.5s`. */
  override toString(): string {
    const size = this.nanos < 0n ? -this.nanos : this.nanos;
    return `${this.nanos < 0n ? '-' : ''}${size / SECOND}${fraction(size % SECOND)}s`;
  }
}

// RFC 3339 §5.6; seconds may be 60 there, but no clock of ours knows leap seconds.
const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})$/;

/** Reads an RFC 3339 text. Throws `invalid_argument` or `overflow`. */
export function parseTimestamp(text: string): Timestamp {
  const parts = RFC3339.exec(text);
  const time = parts === null ? Number.NaN : Date.parse(`${parts[1]}T${parts[2]}${parts[4]?.toUpperCase()}`);
  // Date.parse accepts 31 June as 1 July; the day must survive.
  const day = parts === null ? undefined : Number(parts[1]?.slice(8));
  if (parts === null || Number.isNaN(time) || new Date(`${parts[1]}T00:00:00Z`).getUTCDate() !== day) {
    throw new CelEvaluationError('invalid_argument', 'timestamp() needs a string like 2026-01-31T12:00:00Z');
  }
  return new Timestamp(BigInt(time) * 1_000_000n + BigInt((parts[3] ?? '').padEnd(9, '0')));
}

const UNITS: Record<string, bigint> = {
  h: 3600n * SECOND,
  m: 60n * SECOND,
  s: SECOND,
  ms: 1_000_000n,
  us: 1000n,
  µs: 1000n,
  ns: 1n,
};
const DURATION = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s|us|µs|ns))+$/;
const DURATION_PART = /(\d*)(?:\.(\d*))?(h|ms|m|s|us|µs|ns)/g;

/** Reads a text like `1h30m`, `-1.5s` or `250ms`. Throws `invalid_argument` or `overflow`. */
export function parseDuration(text: string): Duration {
  // 64 characters hold every valid duration in any sensible notation, and keep the numbers small.
  if (text.length > 64 || !(DURATION.test(text) || text === '0')) {
    throw new CelEvaluationError('invalid_argument', 'duration() needs a string like 1h30m, 1.5s or 250ms');
  }
  let nanos = 0n;
  for (const [, whole, part = '', unit] of text.matchAll(DURATION_PART)) {
    const size = UNITS[unit ?? ''] ?? 0n;
    nanos += BigInt(whole ?? '') * size;
    if (part) nanos += (BigInt(part) * size) / 10n ** BigInt(part.length);
  }
  return new Duration(text.startsWith('-') ? -nanos : nanos);
}

function fraction(nanos: bigint): string {
  if (nanos === 0n) return '';
  return `.${nanos.toString().padStart(9, '0').replace(/0+$/, '')}`;
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value < 0n && quotient * by !== value ? quotient - 1n : quotient;
}
