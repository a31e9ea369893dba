/** The message of an error of the admin server, which is JSON below `/api` and text elsewhere. */
export const problemOf = (text: string): string =>
  text.startsWith('{') ? JSON.parse(text).error.message : text;
