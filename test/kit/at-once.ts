/**
 * Most that something may take that must not wait for a time limit, in ms. Far above what it takes, since a shared
 * machine stretches everything, and far below the limits that it tells apart from it, which begin at 10 s.
 */
export const AT_ONCE = 5_000;
