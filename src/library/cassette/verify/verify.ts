import { isSensitiveName } from '../../../core/credentials.ts';
import type { Diagnostic } from '../../../core/diagnostic.ts';
import type { Cassette, Exchange, RecordedFacts } from '../format.ts';
import { Ignored } from '../ignored.ts';
import { diagnosticOf } from './finding.ts';
import { findingsOf } from './findings.ts';
import { Sender, type SenderSettings } from './sender.ts';

export interface VerifySettings extends SenderSettings {
  /** Paths of members of answers that may differ. */
  readonly ignore: readonly string[];
  /** Called when everything was sent. */
  sent?(): Promise<void>;
  /** What the gateway knows of the request of an exchange, if it is our own. */
  factsOf?(exchange: Exchange): Promise<RecordedFacts | undefined>;
}

/** What differs from a recording. */
export interface Verified {
  /** In the order of the file. */
  readonly diagnostics: readonly Diagnostic[];
  /** Requests that were sent. */
  readonly sent: number;
  /** Those of them whose answers are as recorded. */
  readonly same: number;
}

/** Sends the requests of a recording, and compares what they get. @throws TypeError for an ignored member whose path is invalid */
export async function verify(cassette: Cassette, settings: VerifySettings): Promise<Verified> {
  const ignored = Ignored.of(settings.ignore);
  const hasCredential = Object.keys(settings.headers).some((name) => isSensitiveName(name));
  const found = await new Sender(cassette.exchanges, settings).send();
  await settings.sent?.();
  const compared = [...found].map(async ([exchange, now]) => {
    const facts = await settings.factsOf?.(exchange);
    const findings = findingsOf(exchange, now, facts, {
      ignored,
      isStrict: settings.isStrict,
      hasCredential,
    });
    return findings.map((finding) => diagnosticOf(finding, exchange, cassette));
  });
  const all = await Promise.all(compared);
  return {
    diagnostics: all.flat().toSorted((a, b) => a.range.start.line - b.range.start.line),
    sent: all.length,
    same: all.filter(({ length }) => length === 0).length,
  };
}
