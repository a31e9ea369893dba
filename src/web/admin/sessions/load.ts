import { useEffect, useState } from 'react';
import { type ApiError, ask } from '../../shared/api.ts';
import type { RecordPage, ShownRecord } from '../records/record.ts';

/** What a conversation is found by. */
export const BY = ['session', 'trace', 'key', 'user'] as const;
export type By = (typeof BY)[number];

export interface Asked {
  readonly by: By;
  readonly id: string;
  /** How long ago to look, such as `24h`; only for a caller, whose calls have no end. */
  readonly since: string;
  /** Of one conversation of a caller, instead of `since`: RFC 3339; `to` is excluded. */
  readonly from: string;
  readonly to: string;
  /** Whether calls of models by the same caller in the time of a session belong to it. */
  readonly withKey: boolean;
}

/** Whether it is found by who calls. Such calls are not necessarily one conversation. */
export const isCaller = (by: By): boolean => by === 'key' || by === 'user';

export interface Conversation {
  /** Undefined until the first answer. */
  readonly records: readonly ShownRecord[] | undefined;
  /** Ids of those that only have the caller in common with the session. */
  readonly byCaller: ReadonlySet<number>;
  /** Whether there are older calls than `MOST`. */
  readonly isCut: boolean;
  readonly error: ApiError | undefined;
}

/** Calls that are shown of one conversation, the newest. */
export const MOST = 2_000;
const PAGE = 500;

const NOTHING: Conversation = { records: undefined, byCaller: new Set(), isCut: false, error: undefined };

/** The calls of a conversation from the record of requests. */
export function useConversation({ by, id, since, from, to, withKey }: Asked): Conversation {
  const [state, setState] = useState(NOTHING);
  useEffect(() => {
    const gone = new AbortController();
    setState(NOTHING);
    if (id === '') return undefined;
    void conversationOf({ by, id, since, from, to, withKey }, gone.signal).then(
      (found) => setState({ ...found, error: undefined }),
      (error: ApiError) => gone.signal.aborted || setState({ ...NOTHING, error }),
    );
    return () => gone.abort();
  }, [by, id, since, from, to, withKey]);
  return state;
}

async function conversationOf(
  { by, id, since, from, to, withKey }: Asked,
  signal: AbortSignal,
): Promise<Omit<Conversation, 'error'>> {
  const period = from === '' || to === '' ? { since } : { from, to };
  const own = await load({ [by]: id, ...(isCaller(by) ? { ...period, contents: 'true' } : {}) }, signal);
  const callers = new Map(own.records.map((record) => [JSON.stringify(callerOf(record)), callerOf(record)]));
  const [caller] = callers.values();
  // A session that has calls of models itself has all of them.
  const hasModels = own.records.some(({ protocol }) => protocol === 'llm');
  if (by !== 'session' || !withKey || hasModels || caller === undefined || callers.size > 1)
    return { ...own, byCaller: new Set() };
  const times = own.records.map(({ time, durationMs = 0 }) => [Date.parse(time), durationMs] as const);
  const others = await load(
    {
      ...caller,
      protocol: 'llm',
      from: String(Math.floor(Math.min(...times.map(([at]) => at)) - BEFORE)),
      to: String(Math.ceil(Math.max(...times.map(([at, took]) => at + took)) + BEFORE)),
    },
    signal,
  );
  const known = new Set(own.records.map((record) => record.id));
  // Calls of another session are part of that one.
  const added = others.records.filter((record) => !known.has(record.id) && record.session === undefined);
  return {
    records: [...own.records, ...added],
    byCaller: new Set(added.map((record) => record.id)),
    isCut: own.isCut || others.isCut,
  };
}

/** Who has made a call, as a filter of the record; undefined if nobody knows. */
function callerOf({ key, user }: ShownRecord): Readonly<Record<string, string>> | undefined {
  if (key !== undefined) return { key };
  return user === undefined ? undefined : { user };
}

/** A model is asked before the first call of a tool, and once more after the last one. In ms. */
const BEFORE = 120_000;

async function load(
  filter: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<{ readonly records: readonly ShownRecord[]; readonly isCut: boolean }> {
  const records: ShownRecord[] = [];
  let after: string | null = '';
  while (after !== null && records.length < MOST) {
    const query = new URLSearchParams({ ...filter, limit: String(PAGE), ...(after === '' ? {} : { after }) });
    const page: RecordPage = await ask<RecordPage>(`/api/records?${query}`, { signal });
    records.push(...page.records);
    after = page.next;
  }
  return { records: records.slice(0, MOST), isCut: after !== null };
}
