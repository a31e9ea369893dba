import { parseJson } from '../core/foreign.ts';
import type { RequestContext } from '../server/kernel/request/request-context.ts';
import { usdOf } from '../server/record/money.ts';
import { COLUMNS, recordOf } from '../server/record/request-record.ts';
import type { Runtime } from '../server/runtime/runtime.ts';
import type { RequestFacts } from './request-facts.ts';

/** What is known of a request that has ended, with the redaction of its record in the database, if there is one. */
export function factsOf(ctx: RequestContext, status: number, runtime: Runtime): RequestFacts {
  const record = recordOf(ctx, status, runtime.record ?? plainPolicy(runtime));
  const facts = COLUMNS.flatMap(({ name, type, shown }) => {
    const value = record[name];
    const isAbsent = value === null || value === undefined || (type === 'flag' && value === 0);
    return isAbsent ? [] : [[shown, FORMS[type](value)]];
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type is generated from these columns.
  return Object.fromEntries(facts) as RequestFacts;
}

type Stored = string | number;

const FORMS: Readonly<Record<(typeof COLUMNS)[number]['type'], (value: Stored) => unknown>> = {
  text: String,
  count: Number,
  time: (value) => new Date(value),
  duration: (microseconds) => Number(microseconds) / 1000,
  usd: (units) => Number(usdOf(String(units))),
  flag: () => true,
  json: (text) => parseJson(String(text)),
};

const plainPolicy = ({ redactor }: Runtime): Parameters<typeof recordOf>[2] => ({
  added: () => undefined,
  label: (text) => redactor().line(text),
  value: (value) => redactor().value(value),
});
