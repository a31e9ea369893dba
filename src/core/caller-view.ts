/** The response of `/api/me`. */
export interface CallerView {
  /** See `Actor` in `server/audit/event.ts`. */
  readonly actor: { readonly kind: string; readonly name?: string };
  /** Null: the caller may do nothing. */
  readonly role: 'viewer' | 'operator' | 'editor' | null;
  /** Whether the pages come from a gateway (`ui`), which lacks the endpoints that stop and profile the process. */
  readonly isOnGateway: boolean;
  /** What people call the caller, if its token says it: `bob@example.com`. */
  readonly title?: string;
  /** Path that ends the session of the browser, if it has one that can be ended. */
  readonly signOut?: string;
  /** Why it is not a higher one, in words. */
  readonly reason?: string;
}
