import { DONE } from './llm-provider.ts';

interface Event {
  readonly choices?: { index: number; delta?: Delta; finish_reason?: string | null }[];
}
interface Delta {
  readonly content?: string;
  readonly tool_calls?: { function: { arguments: string } }[];
}

/** What a client collects of a stream: per choice its text, tool arguments and end, and whether [DONE] came last. */
export function collected(stream: string): {
  texts: string[];
  calls: string[];
  ends: (string | undefined)[];
  done: boolean;
} {
  const texts: string[] = [];
  const calls: string[] = [];
  const ends: (string | undefined)[] = [];
  for (const line of stream.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    for (const { index, delta, finish_reason: end } of (JSON.parse(line.slice(6)) as Event).choices ?? []) {
      if (delta?.content && ends[index] !== undefined) throw new Error('text after the end of its choice');
      texts[index] = (texts[index] ?? '') + (delta?.content ?? '');
      calls[index] = (calls[index] ?? '') + (delta?.tool_calls?.[0]?.function.arguments ?? '');
      ends[index] ??= end ?? undefined;
    }
  }
  return { texts, calls, ends, done: stream.endsWith(DONE) };
}
