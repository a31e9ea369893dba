/** The response of `/api/me`. */
export interface CallerView {
  /** See `Actor` in `server/audit/event.ts`. */
  readonly actor: { readonly kind: string; readonly name?: string };
  /** Null: the caller may do nothing. */
  readonly role: 'viewer' | 'operator' | 'editor' | null;
  /** Why it is no higher one, in words. */
  readonly reason?: string;
}
