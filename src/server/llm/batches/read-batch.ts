import { jsonIn, membersOf, stringIn } from '../../../core/foreign.ts';
import { formatOf } from '../formats/index.ts';
import type { Members } from '../json-members.ts';
import { isZero, largerUsage, parseUsage, tokenCount, type Usage } from '../usage.ts';

/** What requests of a batch have used. */
export interface BatchUsage {
  readonly model: string | undefined;
  readonly usage: Usage;
}

/** The states in which a batch uses nothing more (OpenAI's API reference, "The batch object"). */
const FINAL = new Set(['completed', 'failed', 'expired', 'cancelled']);

/**
 * What a batch object of OpenAI's API reports when it has ended, with the number of its requests and the file of its results.
 * Undefined for any other object, and for one without usage, as other servers have it: the file of its results has that.
 */
export function batchIn(
  text: string,
): (BatchUsage & { readonly requests: number; readonly resultsFile: string | undefined }) | undefined {
  const batch = membersOf(jsonIn(text));
  if (batch['object'] !== 'batch' || !FINAL.has(String(batch['status']))) return undefined;
  const usage = reportedBy(membersOf(batch['usage']));
  if (usage === undefined || isZero(usage)) return undefined;
  const counts = membersOf(batch['request_counts']);
  return {
    model: stringIn(batch['model']),
    usage,
    requests: tokenCount(counts['completed']) ?? 1,
    resultsFile: stringIn(batch['output_file_id']) || undefined,
  };
}

/** Gateways in front of a provider add the counts of chat completions, as zeros, to those that it has reported. */
function reportedBy(report: Members): Usage | undefined {
  const { prompt_tokens: _, completion_tokens: __, ...others } = report;
  return largerUsage(parseUsage(report), parseUsage(others));
}

/** A line of the results of a batch: undefined if it is something else; without usage if the request has failed. */
export function resultIn(line: string): { readonly used: BatchUsage | undefined } | undefined {
  const { custom_id: id, result, response } = membersOf(jsonIn(line));
  if (typeof id !== 'string' || (result === undefined && response === undefined)) return undefined;
  const { type, message } = membersOf(result);
  const answer = membersOf(type === 'succeeded' ? message : membersOf(response)['body']);
  const report = membersOf(answer['usage']);
  const usage = result === undefined ? parseUsage(report) : formatOf('messages').usage(report);
  return { used: usage && { model: stringIn(answer['model']), usage } };
}
