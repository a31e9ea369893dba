/** The first request of the page at `/`. */
export const OVERVIEW = '/api/overview';
