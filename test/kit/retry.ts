/**
 * Options of tests that need a real browser or terminal: on a shared machine they get a second and third try where
 * nobody watches (`CI`); what fails three times is broken.
 */
export const ON_REAL_SCREEN = { retry: process.env['CI'] === undefined ? 0 : 2 } as const;
