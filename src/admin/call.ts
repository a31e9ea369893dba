import type { IncomingMessage } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import type { AuditOutcome } from '../core/audit-view.ts';
import { type Caller, needsRole } from '../server/admin-access/caller.ts';
import { includes, type Role } from '../server/admin-access/roles.ts';
import type { AdminRoles } from '../server/admin-access/settings.ts';
import { auditOf } from '../server/audit/audit.ts';
import type { Actor, AuditEvent } from '../server/audit/event.ts';
import { UnknownCommit } from '../server/kernel/database.ts';
import { callerOf } from './caller.ts';
import { localUser } from './local-user.ts';
import type { Admin } from './sources.ts';

/** Who may use a method of an endpoint, and what the audit calls it. */
export interface Access {
  /** The lowest role that may; `anyone` shows nothing of the gateway. */
  readonly role: Role | 'anyone';
  /** The action of its events, such as `key.create`; false if it changes nothing. */
  readonly audit: string | false;
}

/** What an endpoint knows of a change. */
type Known = Pick<AuditEvent, 'target' | 'before' | 'after' | 'detail'>;

/** One call of an endpoint: who calls, whether they may, and its event in the audit. */
export class EndpointCall {
  readonly caller: Caller;
  readonly #what: string;
  readonly #access: Access;
  readonly #admin: Admin;
  readonly #request: IncomingMessage;
  /** `config.adminRoles` that have given the caller its role. */
  readonly #roles: AdminRoles | undefined;
  /** Looked up while the connection is open. */
  readonly #actor: Promise<Actor> | undefined;
  #known: Known = {};
  #isUnknown = false;
  #isRecorded: boolean;

  /** `what` is called, for messages. */
  constructor(what: string, caller: Caller, access: Access, admin: Admin, request: IncomingMessage) {
    this.#what = what;
    this.caller = caller;
    this.#access = access;
    this.#admin = admin;
    this.#request = request;
    this.#roles = admin.served().config.config.adminRoles;
    this.#isRecorded = access.audit === false;
    const isWritten =
      access.audit !== false &&
      (this.refusal === undefined || this.#audit?.takesRefusal(caller.actor, caller.from));
    if (isWritten) this.#actor = this.#knownActor();
  }

  /** Why the caller may not call the endpoint; undefined if it may. */
  get refusal(): string | undefined {
    const { role } = this.#access;
    return role === 'anyone' || this.may(role) ? undefined : needsRole(this.#what, role, this.caller);
  }

  /** Whether the caller has a role. */
  may(role: Role): boolean {
    return includes(this.caller.role, role);
  }

  /**
   * Whether the caller would still get the same. Which role the pages on a gateway would give it now, only the gateway knows: after a change
   * of `config.adminRoles`, they are to ask again.
   */
  readonly isStillAllowed = (): boolean => {
    const roles = this.#admin.served().config.config.adminRoles;
    if (isDeepStrictEqual(roles, this.#roles)) return true;
    return this.caller.isDirect === true && callerOf(this.#request, this.#admin)?.role === this.caller.role;
  };

  /** Tells the audit what was changed. Later calls add to it. */
  changed(known: Known): void {
    this.#known = { ...this.#known, ...known };
  }

  /** The call has failed with that error, of the database or of something else. */
  failed(error: unknown): void {
    this.#isUnknown ||= error instanceof UnknownCommit;
  }

  /** The call has changed nothing, because it did not ask for it. */
  changesNothing(): void {
    this.#isRecorded = true;
  }

  /**
   * Writes the event. Called before the answer is sent; endpoints call it themselves if nothing may be written afterwards. Resolves to
   * where it could not be written.
   */
  async record(outcome: AuditOutcome, detail?: string): Promise<readonly string[]> {
    const { audit: action } = this.#access;
    if (this.#isRecorded || action === false) return [];
    this.#isRecorded = true;
    const redactor = this.#admin.redactor();
    const clean = (text: string | undefined): string | undefined => text && redactor.text(text);
    const known = { ...this.#known, target: clean(this.#known.target) };
    const actor = (await this.#actor) ?? this.caller.actor;
    const written = this.#audit?.record({
      ...known,
      action,
      outcome: outcome === 'failed' && this.#isUnknown ? 'unknown' : outcome,
      actor,
      from: this.caller.from,
      detail: clean(known.detail ?? detail),
    });
    return (await written) ?? [];
  }

  get #audit() {
    return auditOf.get(this.#admin.served().runtime.settings);
  }

  async #knownActor(): Promise<Actor> {
    const { actor, role, isDirect } = this.caller;
    const isOwn = actor.kind === 'local' && isDirect === true;
    const name = isOwn ? await localUser(this.#request.socket, this.#admin.isUnixSocket) : actor.name;
    return { ...actor, name, ...(this.#roles !== undefined && { role: role ?? 'none' }) };
  }
}
