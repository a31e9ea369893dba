/** What callers of the admin server may do, each also what those before it may. */
export const ROLES = ['viewer', 'operator', 'editor'] as const;
export type Role = (typeof ROLES)[number];

/** Whether a caller with `role` may do what needs the role `needed`. */
export const includes = (role: Role | undefined, needed: Role): boolean =>
  role !== undefined && ROLES.indexOf(role) >= ROLES.indexOf(needed);
