import { charge } from '../limits.ts';
import { Duration, parseDuration, parseTimestamp, Timestamp } from '../time.ts';
import type { Value } from '../values.ts';
import { timestampOf } from './conversions.ts';
import { type FunctionDefinition, fn, invalid, method, text } from './define.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;

function timestamp(value: Value): Timestamp {
  if (value instanceof Timestamp) return value;
  return typeof value === 'bigint' ? timestampOf(value) : parseTimestamp(text(value));
}

function duration(value: Value): Duration {
  return value instanceof Duration ? value : parseDuration(text(value));
}

/** The clock of a time zone as a `Date` whose UTC fields show it. No zone means UTC. */
function clock(moment: Timestamp, zone: Value | undefined): Date {
  if (zone === undefined) return moment.date;
  const name = text(zone);
  const fixed = /^([+-])?(\d{1,2}):(\d{2})$/.exec(name);
  if (fixed !== null) {
    const minutes = Number(fixed[2]) * 60 + Number(fixed[3]);
    return new Date(moment.date.getTime() + (fixed[1] === '-' ? -minutes : minutes) * MINUTE);
  }
  return new Date(moment.date.getTime() + zoneOffset(name, moment.date));
}

// Building a formatter takes about 30 µs, using one 5 µs.
const formatters = new Map<string, Intl.DateTimeFormat>();

function zoneOffset(zone: string, date: Date): number {
  charge(10);
  let formatter = formatters.get(zone);
  if (formatter === undefined) {
    try {
      formatter = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    } catch {
      throw invalid('unknown time zone');
    }
    charge(60);
    if (formatters.size < 64) formatters.set(zone, formatter);
  }
  const shown = formatter.formatToParts(date).find((part) => part.type === 'timeZoneName')?.value ?? 'GMT';
  const parts = /^GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/.exec(shown);
  const seconds = Number(parts?.[2] ?? 0) * 3600 + Number(parts?.[3] ?? 0) * 60 + Number(parts?.[4] ?? 0);
  return (parts?.[1] === '-' ? -seconds : seconds) * 1000;
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / DAY);
}

const isTimestamp = (value: Value): value is Timestamp => value instanceof Timestamp;
const isDuration = (value: Value): value is Duration => value instanceof Duration;

function field(name: string, read: (clock: Date) => number): FunctionDefinition {
  return method(isTimestamp, name, [0, 1], (moment, zone) => BigInt(read(clock(moment, zone))));
}

function total(name: string, unit: bigint): FunctionDefinition {
  return method(isDuration, name, 0, (span) => span.nanos / unit);
}

/** Times and spans. Months, days of the month and days of the year count from 0, except in `getDate`. */
export const times: readonly FunctionDefinition[] = [
  fn('timestamp', 1, (value) => timestamp(value as Value)),
  fn('duration', 1, (value) => duration(value as Value)),
  field('getFullYear', (date) => date.getUTCFullYear()),
  field('getMonth', (date) => date.getUTCMonth()),
  field('getDate', (date) => date.getUTCDate()),
  field('getDayOfMonth', (date) => date.getUTCDate() - 1),
  field('getDayOfWeek', (date) => date.getUTCDay()),
  field('getDayOfYear', dayOfYear),
  field('getHours', (date) => date.getUTCHours()),
  field('getMinutes', (date) => date.getUTCMinutes()),
  field('getSeconds', (date) => date.getUTCSeconds()),
  field('getMilliseconds', (date) => date.getUTCMilliseconds()),
  total('getHours', 3_600_000_000_000n),
  total('getMinutes', 60_000_000_000n),
  total('getSeconds', 1_000_000_000n),
  // cel-spec: the milliseconds of a duration are those of its last second, not its length.
  method(isDuration, 'getMilliseconds', 0, (span) => (span.nanos / 1_000_000n) % 1000n),
];
