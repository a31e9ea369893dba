import { CommandError } from '../core/exit-codes.ts';

const DEFAULT_MEMORY_API_URL = 'http://memory-api:3006';
const API_PATH = '/api/memory';

/**
 * The URL that the tools call: the given address followed by `/api/memory`, unless it already ends with it (spec, "Base
 * URL resolution"). Trailing slashes are ignored.
 *
 * @throws CommandError with exit name `usage` if it is not an http or https URL, or has a query, fragment or password
 */
export function memoryApiUrl(value: string = DEFAULT_MEMORY_API_URL): URL {
  const text = value.trim();
  const refuse = (why: string): never => {
    throw new CommandError(
      'usage',
      `MEMORY_API_URL ${why}`,
      `set it to the address of the memory backend, such as ${DEFAULT_MEMORY_API_URL} or ${DEFAULT_MEMORY_API_URL}${API_PATH}`,
    );
  };
  if (text === '') refuse('is empty');
  if (!URL.canParse(text)) refuse('is not a URL');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') refuse('must begin with http:// or https://');
  if (url.username !== '' || url.password !== '') {
    refuse('must not contain a name or password: set MEMORY_API_KEY instead');
  }
  if (text.includes('?') || text.includes('#')) refuse('must not have a query or fragment');
  const path = url.pathname.replace(/(?<!\/)\/+$/, '');
  url.pathname = path.endsWith(API_PATH) ? path : `${path}${API_PATH}`;
  return url;
}

/** URL of the dashboard of the backend at that address. */
export function dashboardUrl({ href }: URL): string {
  return `${href.slice(0, -API_PATH.length)}/ui/`;
}
