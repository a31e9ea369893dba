import { useMemo } from 'react';
import { useLoaded } from '../../shared/use-loaded.ts';
import { field, isError, isRefused, toolOf } from '../model/fields.ts';
import { DAY, type Usage, usagePath } from '../model/recorded.ts';
import { useRequests } from '../model/requests.ts';
import { periodBefore } from '../model/usage.ts';

/** How often a tool was called, and when last. */
export interface ToolUse {
  readonly calls: number;
  readonly errors: number;
  readonly refused: number;
  /** ms since 1970, or a day of UTC as text if the exact time is no longer known. */
  readonly last: number | string | undefined;
}

/** Uses of tools by target and name at the target. */
export type ToolUses = (target: string, own: string) => ToolUse;

const NONE: ToolUse = { calls: 0, errors: 0, refused: 0, last: undefined };
/** How long ago is counted, and how often that is read again, in ms. */
const PERIOD = 30 * DAY;
const EVERY = 30_000;

const keyOf = (target: string, own: string): string => `${target}\n${own}`;

/** The calls of the last 30 days if the gateway records them; otherwise those that this page knows. */
export function useToolUses(isRecording: boolean): ToolUses {
  const { entries } = useRequests();
  const period = periodBefore(Date.now(), PERIOD, DAY);
  const { data } = useLoaded<Usage>(isRecording ? usagePath('day,target,tool', period) : undefined, EVERY);
  const live = useMemo(() => {
    const uses = new Map<string, ToolUse>();
    for (const entry of entries) {
      if (field(entry, 'mcp.method.name') !== 'tools/call') continue;
      const key = keyOf(field(entry, 'mcp.target'), toolOf(entry));
      const known = uses.get(key) ?? NONE;
      uses.set(key, {
        calls: known.calls + 1,
        errors: known.errors + (isError(entry) ? 1 : 0),
        refused: known.refused + (isRefused(entry) ? 1 : 0),
        // Entries are in order, the newest first.
        last: known.last ?? entry.at,
      });
    }
    return uses;
  }, [entries]);
  const recorded = useMemo(() => {
    const uses = new Map<string, ToolUse>();
    for (const { group, requests, errors, refused } of data?.rows ?? []) {
      const key = keyOf(group['target'] ?? '', group['tool'] ?? '');
      const known = uses.get(key) ?? NONE;
      uses.set(key, {
        calls: known.calls + requests,
        errors: known.errors + errors,
        refused: known.refused + refused,
        // Days are in order, the newest last.
        last: group['day'],
      });
    }
    return uses;
  }, [data]);
  return useMemo(
    () => (target, own) => {
      const key = keyOf(target, own);
      const now = live.get(key) ?? NONE;
      if (!isRecording) return now;
      const all = recorded.get(key) ?? NONE;
      return { ...all, last: now.last ?? all.last };
    },
    [live, recorded, isRecording],
  );
}
