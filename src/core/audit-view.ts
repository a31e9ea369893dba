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
  readonly outcome: 'done' | 'refused' | 'failed';
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
  readonly detail?: string | undefined;
}
