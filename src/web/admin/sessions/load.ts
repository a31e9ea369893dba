import { useEffect, useState } from 'react';
import { type ApiError, ask } from '../../shared/api.ts';
import type { RecordPage, ShownRecord } from '../records/record.ts';

/** What a conversation is found by. */
export const BY = ['session', 'trace', 'key'] as const;
export type By = (typeof BY)[number];

export interface Asked {
  readonly by: By;
  readonly id: string;
  /** How long ago to look, such as `24h`; only for a key, which has no end. */
  readonly since: string;
  /** Whether calls of models with the same key in the time of a session belong to it. */
  readonly withKey: boolean;
}

export interface Conversation {
  /** Undefined until the first answer. */
  readonly records: readonly ShownRecord[] | undefined;
  /** Ids of those that only have the key in common with the session. */
  readonly byKey: ReadonlySet<number>;
  /** Whether there are older calls than `MOST`. */
  readonly isCut: boolean;
  readonly error: ApiError | undefined;
}

/** Calls that are shown of one conversation, the newest. */
export const MOST = 2_000;
const PAGE = 500;

const NOTHING: Conversation = { records: undefined, byKey: new Set(), isCut: false, error: undefined };

/** The calls of a conversation from the record of requests. */
export function useConversation({ by, id, since, withKey }: Asked): Conversation {
  const [state, setState] = useState(NOTHING);
  useEffect(() => {
    const gone = new AbortController();
    setState(NOTHING);
    if (id === '') return undefined;
    void conversationOf({ by, id, since, withKey }, gone.signal).then(
      (found) => setState({ ...found, error: undefined }),
      (error: ApiError) => gone.signal.aborted || setState({ ...NOTHING, error }),
    );
    return () => gone.abort();
  }, [by, id, since, withKey]);
  return state;
}

async function conversationOf(
  { by, id, since, withKey }: Asked,
  signal: AbortSignal,
): Promise<Omit<Conversation, 'error'>> {
  const own = await load({ [by]: id, ...(by === 'key' ? { since, contents: 'true' } : {}) }, signal);
  const keys = [...new Set(own.records.flatMap(({ key }) => key ?? []))];
  const [key] = keys;
  // A session that has calls of models itself has all of them.
  const hasModels = own.records.some(({ protocol }) => protocol === 'llm');
  if (by !== 'session' || !withKey || hasModels || key === undefined || keys.length > 1)
    return { ...own, byKey: new Set() };
  const times = own.records.map(({ time, durationMs = 0 }) => [Date.parse(time), durationMs] as const);
  const others = await load(
    {
      key,
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
    byKey: new Set(added.map((record) => record.id)),
    isCut: own.isCut || others.isCut,
  };
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
