import { isRecord, jsonIn } from '../../../core/foreign.ts';
import { isEmpty } from './event-data.ts';
import { parseExactly } from './exact-json.ts';
import { excerptOf } from './excerpt.ts';
import { serverSentEvents } from './server-sent-events.ts';

/** What a provider's error response says: its JSON, also that of an event, or else a sentence with the first words. */
export function errorValue(bytes: Buffer, status: number): unknown {
  return (
    parseExactly((errorEvent(bytes) ?? bytes).toString('utf8')) ?? errorSentence(status, excerptOf(bytes))
  );
}

/** The message for an error response that is not JSON, or whose JSON has no message. */
export const errorSentence = (status: number, said: string): string =>
  `the provider responded with HTTP ${status}${said === '' ? '' : `: ${said}`}`;

/**
 * The JSON of an error that is the data of an event: servers answer requests for streams so, whatever the status
 * (Portkey-AI/gateway#722). Undefined for other bodies.
 */
export function errorEvent(bytes: Buffer): Buffer | undefined {
  if (!/^\s*(?:event|data|id|retry)?:/.test(bytes.toString('latin1', 0, 64))) return undefined;
  const splitter = serverSentEvents.splitter(bytes.length);
  const objects = [...splitter.push(bytes), ...splitter.end()].flatMap(({ data }) => {
    const value = jsonIn(data);
    return isRecord(value) ? [{ data, value }] : [];
  });
  const found = objects.find(({ value }) => !isEmpty(value['error'])) ?? objects[0];
  return found && Buffer.from(found.data);
}
