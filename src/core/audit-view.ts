/**
 * How the attempt of a change ended. `refused`: the caller may not do that. `failed`: nothing was changed for another reason. `unknown`:
 * whether it was changed is not known, because the connection to the database was lost during the commit.
 */
export const AUDIT_OUTCOMES = ['done', 'refused', 'failed', 'unknown'] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** The response of `/api/audit`. Texts may come from callers. */
export interface AuditView {
  /** Newest first. */
  readonly events: readonly AuditEventView[];
  /** For the parameter `after` of the next page; null at the end. */
  readonly next: number | null;
  /** Whether events outlive the process, because there is a database. */
  readonly kept: boolean;
}

/** One event, also as a line of the audit file. `server/audit/event.ts` says what its members are. */
export interface AuditEventView {
  /** RFC 3339. */
  readonly time: string;
  readonly action: string;
  readonly outcome: AuditOutcome;
  readonly actor: {
    readonly kind: string;
    readonly name?: string | undefined;
    readonly issuer?: string | undefined;
    readonly role?: string | undefined;
  };
  readonly from?: { readonly address: string; readonly proxy?: string | undefined } | undefined;
  readonly target?: string | undefined;
  readonly before?: string | undefined;
  readonly after?: string | undefined;
  readonly gateway?: string | undefined;
  readonly detail?: string | undefined;
}
