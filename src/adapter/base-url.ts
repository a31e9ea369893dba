import { CommandError } from '../core/exit-codes.ts';

export const DEFAULT_MEMORY_API_URL = 'http://memory-api:3006';
const API_PATH = '/api/memory';

/**
 * Where the tools send their calls: the given address, with `/api/memory` behind it unless it already ends so (spec,
 * "Base URL resolution"). Slashes at the end do not count.
 *
 * @throws CommandError (usage) for what is no http or https address, or has a query, fragment or password
 */
export function memoryApiUrl(value: string = DEFAULT_MEMORY_API_URL): URL {
  const text = value.trim();
  const refuse = (why: string): never => {
    throw new CommandError(
      'usage',
      `MEMORY_API_URL ${why}`,
      `give the address of the memory backend, such as ${DEFAULT_MEMORY_API_URL} or ${DEFAULT_MEMORY_API_URL}${API_PATH}`,
    );
  };
  if (text === '') refuse('is empty');
  if (!URL.canParse(text)) refuse('is not a URL');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') refuse('must begin with http:// or https://');
  if (url.username !== '' || url.password !== '') {
    refuse('must not hold a name or password: the key goes into MEMORY_API_KEY');
  }
  if (text.includes('?') || text.includes('#')) refuse('must not have a query or fragment');
  const path = url.pathname.replace(/\/+$/, '');
  url.pathname = path.endsWith(API_PATH) ? path : `${path}${API_PATH}`;
  return url;
}

/** Where people look at the memory behind that address. */
export function dashboardUrl({ href }: URL): string {
  return `${href.slice(0, -API_PATH.length)}/ui/`;
}
