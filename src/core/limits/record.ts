import { KIB, MIB, SECOND } from './units.ts';

/** Limits of the record of requests. Times are in ms and sizes in bytes unless a comment says otherwise. */
export const RECORD_LIMITS = {
  /** Records of one process that wait to be stored, and bytes of their texts; further ones are lost, which is counted. */
  recordQueue: 20_000,
  recordQueueBytes: 32 * MIB,
  /** Records that are stored in one transaction, and bytes of their texts. */
  recordBatch: 1_000,
  recordBatchBytes: 4 * MIB,
  /** A record is stored at most this long after its request has ended, if the database keeps up. */
  recordDelay: 200,
  /** Wait before a failed transaction is repeated, doubled each time up to the second value. */
  recordRetry: SECOND,
  recordMaxRetry: 30 * SECOND,
  /**
   * With `failureMode: deny`, the database counts as working this long after it has stored something; then a request waits
   * for an attempt, for at most the second value.
   */
  recordFreshness: SECOND,
  recordProbe: SECOND,
  /** A shutdown waits this long for the last records to be stored. */
  recordFlush: 5 * SECOND,
  /** Interval of warnings that records are lost. */
  recordWarningInterval: 60 * SECOND,
  /** Characters of one recorded text, such as an error or a path; a longer one is cut. */
  recordText: KIB,
  /** Characters of a payload's text whose words can be searched. */
  recordWords: 256 * KIB,
  /** How often what is older than `retention` is deleted, and how many records in one transaction. */
  recordExpiryInterval: 60 * SECOND,
  recordExpiryBatch: 1_000,
  /** After a jump of the clock nothing is deleted for this long: it may be wrong. */
  recordClockSettle: 3600 * SECOND,
  /** A jump: the clock and the monotonic clock differ by more than this. */
  recordClockJump: 60 * SECOND,
  /** Records of one page of a search, and how long a search may take before it answers with what it has. */
  recordPage: 500,
  recordSearchTime: 150,
  /** Records that the first step of a search looks at; fast steps make the next one larger. */
  recordSearchStep: 2_000,
  recordSearchMaxStep: 64_000,
  /** Characters of a preview of a record, and of the request or answer from which it is taken. */
  recordPreview: 160,
  recordPreviewSource: 16_384,
  /** Rows of a table of usage. */
  usageRows: 10_000,
  /** Age at which sums of hours become sums of days (UTC). */
  usageHours: 48 * 3600 * SECOND,
} as const;
