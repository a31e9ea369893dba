import { elementsOf, isRecord, membersOf, shownValue } from '../../../core/foreign.ts';
import { NotImported } from '../imported.ts';
import { isPattern } from '../patterns.ts';
import { numeric } from '../values.ts';

const OPERATORS: Readonly<Record<string, (left: string, right: unknown) => string>> = {
  $eq: (left, right) => `${left} == ${value(right)}`,
  $ne: (left, right) => `${left} != ${value(right)}`,
  $gt: (left, right) => `${left} > ${number(right)}`,
  $gte: (left, right) => `${left} >= ${number(right)}`,
  $lt: (left, right) => `${left} < ${number(right)}`,
  $lte: (left, right) => `${left} <= ${number(right)}`,
  $in: (left, right) => `${left} in ${list(right)}`,
  $nin: (left, right) => `!(${left} in ${list(right)})`,
  $regex: (left, right) => `string(${left}).matches(${pattern(right)})`,
};

/** A query of Portkey's conditional strategy as an expression. @throws NotImported */
export function expressionOf(query: unknown): string {
  const parts = Object.entries(membersOf(query)).map(([key, wanted]) => {
    if (key === '$or' || key === '$and') {
      const inner = elementsOf(wanted).map((each) => `(${expressionOf(each)})`);
      if (inner.length === 0) throw new NotImported(`\`${key}\` has no conditions`);
      return inner.length === 1 ? (inner[0] ?? '') : `(${inner.join(key === '$or' ? ' || ' : ' && ')})`;
    }
    const left = leftOf(key);
    if (!isRecord(wanted)) return `${left} == ${value(wanted)}`;
    return Object.entries(wanted)
      .map(([operator, right]) => {
        const write = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
        if (write === undefined) throw new NotImported(`the operator \`${operator}\` has no counterpart`);
        return write(left, right);
      })
      .join(' && ');
  });
  if (parts.length === 0) throw new NotImported('it has no conditions');
  return parts.join(' && ');
}

/** Portkey reads two names: of the metadata in a header, the body, or the address. A missing one is null. */
function leftOf(key: string): string {
  const [root = '', name = ''] = key.split('.');
  if (root === 'metadata' && name !== '')
    return `default(json(request.headers["x-portkey-metadata"])[${JSON.stringify(name)}], null)`;
  if (root === 'params' && name !== '') return `default(llmRequest[${JSON.stringify(name)}], null)`;
  if (key === 'url.pathname') return 'request.path';
  throw new NotImported(`\`${key}\` has no counterpart`);
}

function value(right: unknown): string {
  if (right === null || ['string', 'number', 'boolean'].includes(typeof right)) return JSON.stringify(right);
  throw new NotImported('it compares with an object');
}

function list(right: unknown): string {
  if (!Array.isArray(right)) throw new NotImported('`$in` and `$nin` need a list');
  return `[${right.map(value).join(', ')}]`;
}

function pattern(right: unknown): string {
  if (typeof right === 'string' && isPattern(right)) return value(right);
  throw new NotImported(`\`${shownValue(right)}\` is not a regular expression that RE2 supports`);
}

function number(right: unknown): string {
  const found = numeric(right);
  if (found === undefined) throw new NotImported('`$gt`, `$gte`, `$lt` and `$lte` need a number');
  return String(found);
}
