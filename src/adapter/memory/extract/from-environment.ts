import { AppError } from '../../../core/errors.ts';
import { createChatExtractor, type Extractor } from './chat-extractor.ts';

const URL_NAME = 'MEMORY_EXTRACTION_URL';
const MODEL_NAME = 'MEMORY_EXTRACTION_MODEL';
const KEY_NAME = 'MEMORY_EXTRACTION_API_KEY';
const PATH = '/chat/completions';
/** Characters allowed in a header. */
const KEY = /^[\x21-\x7e]+$/;

/**
 * The extractor of `MEMORY_EXTRACTION_URL`, or undefined: extraction is off by default. Empty variables count as unset.
 *
 * @throws AppError `bad_request` that names the variable
 */
export function extractorFrom(env: Readonly<Record<string, string | undefined>>): Extractor | undefined {
  const [address, model, apiKey] = [URL_NAME, MODEL_NAME, KEY_NAME].map((name) => env[name] || undefined);
  if (address === undefined) {
    const useless = model !== undefined ? MODEL_NAME : apiKey !== undefined ? KEY_NAME : undefined;
    if (useless !== undefined) throw wrong(useless, `is set, but ${URL_NAME} is not: set both or neither`);
    return undefined;
  }
  if (model === undefined) throw wrong(MODEL_NAME, `is required with ${URL_NAME}, such as gpt-4.1-mini`);
  if (apiKey !== undefined && !KEY.test(apiKey))
    throw wrong(KEY_NAME, 'contains a space or another character that a key cannot have');
  return createChatExtractor({ url: chatUrl(address), model, apiKey });
}

/** Accepts `https://host`, `https://host/v1` and the full URL. */
function chatUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw wrong(URL_NAME, 'expected an http or https address, such as http://localhost:4000/v1');
  if (url.username !== '' || url.password !== '')
    throw wrong(URL_NAME, `contains a name or password: set ${KEY_NAME} instead`);
  url.hash = '';
  const path = url.pathname.replace(/(?<!\/)\/+$/, '');
  if (path.endsWith(PATH)) url.pathname = path;
  else url.pathname = path === '' ? `/v1${PATH}` : `${path}${PATH}`;
  return url;
}

function wrong(name: string, problem: string): AppError {
  return new AppError('bad_request', { message: `${name}: ${problem}` });
}
