// The TypeScript type of what is known of a request that has ended, from the columns of the record of requests.
import { COLUMNS } from '../../src/server/record/request-record.ts';

const TYPES: Readonly<Record<(typeof COLUMNS)[number]['type'], string>> = {
  text: 'string',
  count: 'number',
  time: 'Date',
  duration: 'number',
  usd: 'number',
  flag: 'true',
  json: 'Readonly<Record<string, unknown>>',
};

/** Known of every request. */
const ALWAYS = new Set(['time', 'durationMs', 'protocol', 'operation', 'listener', 'path', 'status']);

/** Text of src/library/request-facts.ts. */
export function requestFactsTypes(): string {
  const members = COLUMNS.map(
    ({ shown, type, doc }) =>
      `  /** ${doc} */\n  readonly ${shown}${ALWAYS.has(shown) ? '' : '?'}: ${TYPES[type]};\n`,
  );
  return `// Generated from the columns of the record of requests: npm run gen

/** What is known of a request that has ended. Secrets are redacted. */
export interface RequestFacts {
${members.join('')}}
`;
}
