import type { OAuthDiscoveryState, OAuthClientProvider as Provider2 } from '@modelcontextprotocol/client';
import type { OAuthClientProvider as Provider1 } from '@modelcontextprotocol/sdk/client/auth.js';
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';

/** Where browsers are sent back to. Nobody listens there: tests read the address. */
const CALLBACK = 'http://127.0.0.1:33418/callback';

/** What an MCP client remembers between the steps of signing in, for the official clients of both generations. */
export class OAuthMemory implements Provider1, Provider2 {
  readonly redirectUrl: string = CALLBACK;
  readonly clientMetadata: OAuthClientMetadata = {
    client_name: 'An MCP client',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  /** Where the client would send the browser. */
  authorizationUrl: URL | undefined;
  /** The tokens that it was given, in order. */
  readonly granted: OAuthTokens[] = [];
  #client: OAuthClientInformationMixed | undefined;
  #verifier = '';
  #discovery: OAuthDiscoveryState | undefined;

  clientInformation = (): OAuthClientInformationMixed | undefined => this.#client;
  saveClientInformation = (client: OAuthClientInformationMixed): void => {
    this.#client = client;
  };
  tokens = (): OAuthTokens | undefined => this.granted.at(-1);
  saveTokens = (tokens: OAuthTokens): void => void this.granted.push(tokens);
  redirectToAuthorization = (url: URL): void => {
    this.authorizationUrl = url;
  };
  saveCodeVerifier = (verifier: string): void => {
    this.#verifier = verifier;
  };
  codeVerifier = (): string => this.#verifier;
  saveDiscoveryState = (state: OAuthDiscoveryState): void => {
    this.#discovery = state;
  };
  discoveryState = (): OAuthDiscoveryState | undefined => this.#discovery;
}

/**
 * A browser that follows redirects, with cookies, until it would leave for the client's callback. Pages with a form on
 * the way are answered with these fields. Returns the parameters with which it would arrive at the callback.
 */
export async function browse(
  start: URL | undefined,
  fields: Readonly<Record<string, string>> = {},
): Promise<URLSearchParams> {
  const cookies = new Map<string, string>();
  let url = start ?? new URL('about:blank');
  let form: URLSearchParams | undefined;
  for (let hops = 0; hops < 20; hops += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form === undefined ? {} : { method: 'POST', body: form }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const page = await response.text();
    const location = response.headers.get('location') ?? actionOf(page);
    if (location === undefined) throw new Error(`${url} ended with ${response.status}: ${page}`);
    form = response.headers.has('location') ? undefined : formOf(page, fields);
    url = new URL(location, url);
    if (url.href.startsWith(CALLBACK)) return url.searchParams;
  }
  throw new Error(`the redirects have no end: ${url}`);
}

function actionOf(page: string): string | undefined {
  return /<form[^>]*\saction="([^"]+)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
}

/** The inputs that a page has filled in itself, and those of the fields that it asks for. */
function formOf(page: string, fields: Readonly<Record<string, string>>): URLSearchParams {
  const form = new URLSearchParams();
  for (const [input] of page.matchAll(/<input[^>]*>/g)) {
    const [, name = ''] = /\sname="([^"]*)"/.exec(input) ?? [];
    const [, value] = /\svalue="([^"]*)"/.exec(input) ?? [];
    const isHidden = /\stype="hidden"/.test(input);
    if (fields[name] !== undefined) form.set(name, fields[name]);
    else if (isHidden && name !== '') form.set(name, value ?? '');
  }
  return form;
}
