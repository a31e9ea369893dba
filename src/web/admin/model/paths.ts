/** What `/` of the pages asks for first. */
export const OVERVIEW = '/api/overview';
