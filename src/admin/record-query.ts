import type { FastifyReply, FastifyRequest } from 'fastify';
import { durationSchema } from '../core/duration.ts';
import { AppError } from '../core/errors.ts';
import { membersOf } from '../core/foreign.ts';
import { LIMITS } from '../core/limits.ts';
import { USAGE_GROUPS, usageGroupsIn } from '../core/usage.ts';
import type { Database } from '../server/kernel/database.ts';
import { FILTER_NAMES, type Search } from '../server/record/search.ts';
import type { Cursor } from '../server/record/steps.ts';
import type { UsageQuery } from '../server/record/usage.ts';
import { sendJson, sendProblem } from './endpoint.ts';
import type { Admin } from './sources.ts';

// Query parameters of the endpoints that read the record of requests and the audit.

/** A parameter is not what it should be. Becomes status 400 with the message as text. */
export class InvalidParameter extends Error {}

/** The caller may not ask for that. Becomes status 403 with the message as text. */
export class Refused extends Error {}

type Parameters = ReadonlyMap<string, string>;

/** The parameters, each once and not empty. @throws InvalidParameter for one that is not `known` */
export function parametersOf(request: FastifyRequest, known: readonly string[]): Parameters {
  const all = new Map<string, string>();
  for (const [name, value] of Object.entries(membersOf(request.query))) {
    if (!known.includes(name))
      throw new InvalidParameter(`unknown parameter ${JSON.stringify(name)}: expected ${known.join(', ')}`);
    if (typeof value !== 'string') throw new InvalidParameter(`${name} is given more than once`);
    if (value !== '') all.set(name, value);
  }
  return all;
}

export const TIMES = ['since', 'from', 'to'];

/** What `/api/records` searches. @throws InvalidParameter */
export function searchOf(request: FastifyRequest): Search {
  const given = parametersOf(request, [
    ...FILTER_NAMES,
    ...TIMES,
    'status',
    'contents',
    'text',
    'limit',
    'after',
  ]);
  return {
    ...timesOf(given, 0),
    equal: picked(given, FILTER_NAMES),
    status: statusOf(given.get('status')),
    hasContents: isTrue(given, 'contents'),
    text: given.get('text'),
    limit: limitOf(given.get('limit')),
    after: cursorOf(given.get('after')),
  };
}

/** What `/api/usage` sums. @throws InvalidParameter */
export function usageQueryOf(request: FastifyRequest): UsageQuery {
  const filters = USAGE_GROUPS.filter((name) => name !== 'day' && name !== 'hour');
  const given = parametersOf(request, ['by', ...filters, ...TIMES]);
  const by = usageGroupsIn(given.get('by') ?? 'model');
  if (typeof by === 'string') throw new InvalidParameter(by);
  return { ...timesOf(given, 7 * DAY), by, equal: picked(given, filters) };
}

const DAY = 24 * 3600 * 1000;

function picked<Name extends string>(
  given: Parameters,
  names: readonly Name[],
): Partial<Record<Name, string>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- these names, and texts
  return Object.fromEntries(
    names.flatMap((name) => (given.has(name) ? [[name, given.get(name)]] : [])),
  ) as Partial<Record<Name, string>>;
}

/** `since=7d`, or `from` and `to` as times. `usual`: how far back to look by default; 0: without limit. */
export function timesOf(given: Parameters, usual: number): { from: number; to: number } {
  const now = Date.now();
  const since = given.get('since');
  if (since !== undefined && given.has('from'))
    throw new InvalidParameter('since and from cannot be used together');
  const to = timeOf(given, 'to') ?? now + 1;
  if (since === undefined) return { from: timeOf(given, 'from') ?? (usual === 0 ? 0 : now - usual), to };
  const { data: time } = durationSchema.safeParse(since);
  if (time === undefined)
    throw new InvalidParameter(
      'since is not a duration: expected a number with a unit, such as 90m, 12h or 7d',
    );
  return { from: now - time, to };
}

function timeOf(given: Parameters, name: string): number | undefined {
  const text = given.get(name);
  if (text === undefined) return undefined;
  const time = /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isNaN(time))
    throw new InvalidParameter(
      `${name} is not a time: expected one such as 2026-10-01T12:00:00Z, or milliseconds since 1970`,
    );
  return time;
}

/** @throws InvalidParameter for anything but `true` and `false` */
function isTrue(given: Parameters, name: string): boolean {
  const text = given.get(name) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new InvalidParameter(`${name} is neither true nor false`);
}

/** `404`, `5xx`, `error` for requests that failed, or `refused`. */
function statusOf(text: string | undefined): Search['status'] {
  if (text === undefined) return undefined;
  if (text === 'error' || text === 'refused') return text;
  if (/^[1-5]xx$/.test(text)) return [Number(text[0]) * 100, Number(text[0]) * 100 + 99];
  if (/^[1-5]\d\d$/.test(text)) return [Number(text), Number(text)];
  throw new InvalidParameter(
    'status is not one: expected a number such as 404, a class such as 5xx, error or refused',
  );
}

export function limitOf(text = '50', max: number = LIMITS.recordPage): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= max) return limit;
  throw new InvalidParameter(`limit is not a number from 1 to ${max}`);
}

/** A cursor as text, for the parameter `after`. */
export const cursorText = ({ time, id }: Cursor): string => `${time}-${id}`;

function cursorOf(text: string | undefined): Cursor | undefined {
  if (text === undefined) return undefined;
  const [, time, id] = /^(\d{1,16})-(\d{1,16})$/.exec(text) ?? [];
  if (time === undefined) throw new InvalidParameter('after is not the `next` of another page');
  return { time: Number(time), id: Number(id) };
}

/** Answers with what `read` gets from the database as JSON, or with why that is not possible. */
export async function answerFromDatabase(
  reply: FastifyReply,
  { served }: Admin,
  read: (database: Database) => Promise<unknown>,
): Promise<FastifyReply> {
  const { database } = served().runtime;
  if (database === undefined)
    return sendProblem(
      reply,
      409,
      'the gateway has no database for records of requests: set config.database.url, and restart the gateway (a reload does not open a database)',
    );
  return answer(reply, () => read(database));
}

/** Answers with what `read` returns as JSON, or with why that is not possible. */
export async function answer(reply: FastifyReply, read: () => Promise<unknown>): Promise<FastifyReply> {
  let value: unknown;
  try {
    value = await read();
  } catch (error) {
    if (error instanceof InvalidParameter) return sendProblem(reply, 400, error.message);
    if (error instanceof Refused) return sendProblem(reply, 403, error.message);
    if (!(error instanceof AppError)) throw error;
    return sendProblem(reply, 503, `the database is not available: ${error.detail ?? error.message}`);
  }
  return value === undefined
    ? sendProblem(reply, 404, 'no record has this id: `/api/records` lists those that are kept')
    : sendJson(reply, value);
}
