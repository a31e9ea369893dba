import { durationText } from '../../core/duration.ts';
import { AppError, messageOf } from '../../core/errors.ts';
import type { Limits } from '../../core/limits.ts';
import { escapeInJson, type Log } from '../../core/log.ts';
import type { Database } from '../kernel/database.ts';
import { Slot } from '../kernel/slot.ts';
import { appendLine } from './append-line.ts';
import { cleanEvent } from './clean-event.ts';
import { type Actor, type AuditEvent, type Origin, shownEvent } from './event.ts';
import { Expiry } from './expiry.ts';
import { type Change, Refusals } from './refusals.ts';
import { type AuditPage, type AuditQuery, insertOf, listEvents } from './table.ts';

const SCOPE = 'audit';

export interface AuditOptions {
  readonly log: Log;
  /** Absolute path; undefined without a file. */
  readonly file: string | undefined;
  readonly database: Database | undefined;
  /** Of the events; undefined for a command. */
  readonly gateway: string | undefined;
  /** Age at which events are deleted from the database, in ms; undefined where another process does that. */
  readonly retention: number | undefined;
  readonly limits: Limits;
  /** Called when an event could not be written to the file or the database. */
  failed(sink: 'file' | 'database'): void;
  /** Called when a refused attempt is not written, because its caller was refused too often. */
  omitted?(): void;
}

/**
 * Says who has changed what: one event each, in the log (whatever its levels), in the database and in a file. The log has
 * every event. What the others cannot take is logged and counted, and the change stands.
 */
export class Audit {
  readonly #options: AuditOptions;
  readonly #expiry: Expiry | undefined;
  /** The last events, for gateways without a database; oldest first. */
  readonly #recent: AuditEvent[] = [];
  /** How many earlier ones are not kept any more. */
  #dropped = 0;
  readonly #open = new Set<Promise<unknown>>();
  readonly #refusals: Refusals;
  /** Lines are appended one after the other. */
  #lastLine: Promise<unknown> = Promise.resolve();
  /** Those that did not take the last event. */
  readonly #failing = new Set<'file' | 'database'>();
  /** Lines that are not written yet. */
  #waiting = 0;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#refusals = new Refusals(options.limits, (change) => void this.#write(change));
    const { database, retention, log, limits } = options;
    if (database !== undefined && retention !== undefined)
      this.#expiry = new Expiry({ database, retention, log, limits });
  }

  /** Whether a refused attempt of this caller would be written now: not to be found out more about it than that. */
  takesRefusal(actor: Actor, from: Origin | undefined): boolean {
    return this.#refusals.takes(actor, from);
  }

  /**
   * Writes an event. Resolves when it is written everywhere, or cannot be, after `LIMITS.auditWait` at the latest: to where it
   * could not be written. Never rejects.
   */
  async record(change: Change): Promise<readonly ('file' | 'database')[]> {
    if (change.outcome === 'refused' && !this.#refusals.admit(change)) {
      this.#options.omitted?.();
      return [];
    }
    return this.#write(change);
  }

  async #write(change: Change): Promise<readonly ('file' | 'database')[]> {
    const { log, file, database, gateway, limits } = this.#options;
    const event = cleanEvent({ ...change, time: Date.now(), gateway });
    log.always(SCOPE, event.action, logFields(event));
    if (database === undefined) this.#recent.push(event);
    if (this.#recent.length > limits.auditRecent) {
      this.#recent.shift();
      this.#dropped += 1;
    }
    const writes = [
      ...(file === undefined ? [] : [this.#settled('file', this.#inTime(this.#append(file, event)))]),
      ...(database === undefined
        ? []
        : [this.#settled('database', this.#inTime(database.transaction([insertOf(event)])))]),
    ];
    const all = Promise.all(writes).then((failed) => failed.flatMap((sink) => sink ?? []));
    this.#open.add(all);
    return all.finally(() => this.#open.delete(all));
  }

  /** A page of events: of the database, or else of those of this process. Rejects as `Database.query`. */
  list(query: AuditQuery): Promise<AuditPage> {
    const { database } = this.#options;
    return database === undefined ? Promise.resolve(this.#listRecent(query)) : listEvents(database, query);
  }

  /** Says in the log if the file cannot be written, before there is an event. */
  async check(): Promise<void> {
    const { file } = this.#options;
    if (file !== undefined) await this.#settled('file', appendLine(file, ''));
  }

  /** Events that are kept in memory. */
  get kept(): { readonly used: number; readonly max: number } {
    return { used: this.#recent.length, max: this.#options.limits.auditRecent };
  }

  /** Whether events are kept when the process ends. */
  get isKept(): boolean {
    return this.#options.database !== undefined;
  }

  /** Resolves when everything is written. The database is closed later. */
  async close(): Promise<void> {
    this.#expiry?.close();
    this.#refusals.close();
    await Promise.all(this.#open);
  }

  #append(file: string, event: AuditEvent): Promise<void> {
    if (this.#waiting >= this.#options.limits.auditRecent)
      return Promise.reject(new Error('earlier lines are not written yet'));
    this.#waiting += 1;
    const written = this.#lastLine.then(async () => {
      await appendLine(file, escapeInJson(JSON.stringify(shownEvent(event))));
    });
    this.#lastLine = written.catch(() => undefined).finally(() => (this.#waiting -= 1));
    return written;
  }

  /** Rejects if a write takes too long: a network file system may not answer at all. It may succeed later. */
  #inTime(write: Promise<unknown>): Promise<unknown> {
    const { auditWait } = this.#options.limits;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Error(`no answer within ${durationText(auditWait)}`)),
      auditWait,
    );
    return Promise.race([write, late]).finally(() => clearTimeout(timer));
  }

  async #settled<Sink extends 'file' | 'database'>(
    sink: Sink,
    write: Promise<unknown>,
  ): Promise<Sink | undefined> {
    const { log, file, failed } = this.#options;
    try {
      await write;
      if (this.#failing.delete(sink)) log.info(SCOPE, `events are written to the ${sink} again`);
      return undefined;
    } catch (error) {
      this.#failing.add(sink);
      failed(sink);
      log.warn(SCOPE, `events cannot be written to the ${sink}; the log has them`, {
        problem: (error instanceof AppError ? error.detail : undefined) ?? messageOf(error),
        ...(sink === 'file' && { file }),
      });
      return sink;
    }
  }

  #listRecent({
    from,
    to,
    action,
    actor,
    outcome,
    limit,
    after = Number.MAX_SAFE_INTEGER,
  }: AuditQuery): AuditPage {
    const found = this.#recent.flatMap((event, index) => {
      const isListed =
        event.time >= from &&
        event.time < to &&
        (action === undefined || event.action === action) &&
        (actor === undefined || event.actor.name === actor) &&
        (outcome === undefined || event.outcome === outcome);
      const id = this.#dropped + index;
      return isListed && id < after ? [{ event, id }] : [];
    });
    const shown = found.reverse().slice(0, limit);
    return {
      events: shown.map(({ event }) => event),
      next: found.length > limit ? shown.at(-1)?.id : undefined,
    };
  }
}

/** An event as the fields of a log line, whose message is its action. */
function logFields({
  actor,
  from,
  outcome,
  target,
  before,
  after,
  gateway,
  detail,
}: AuditEvent): Readonly<Record<string, unknown>> {
  const { kind, name, issuer, role } = actor;
  return {
    outcome,
    actor: name,
    'actor.kind': kind,
    'actor.issuer': issuer,
    role,
    from: from?.address,
    proxy: from?.proxy,
    target,
    before,
    after,
    gateway,
    detail,
  };
}

/** That of a process. Set on the settings before policies are compiled. */
export const auditOf = new Slot<Audit>();
