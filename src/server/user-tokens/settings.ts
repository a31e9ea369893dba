import { z } from 'zod';
import { isLoopbackHost } from '../../core/dns-rebinding.ts';

/** `config.mcp.signIn`. */
export const signInSchema = z.lazy(() =>
  z
    .strictObject({
      url: z
        .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
        .refine(isPage, {
          error:
            'expected an https URL (http only on this machine) with a path that has no `/` at its end, and without user, query and fragment',
          params: { help: 'write it as browsers open it, such as `https://gateway.example.com/sign-in`' },
        })
        .describe(
          'URL of the page on which users sign in, such as `https://gateway.example.com/sign-in`. A route with the policy `mcpSignIn` answers it and what is below it; redirect URIs are below `<url>/callback`.',
        ),
      users: z
        .enum(['authenticated', 'code'])
        .default('authenticated')
        .describe(
          'How the page knows that its user is the one whose client got the link. `authenticated`: a policy of its route has authenticated the same user (`oidc`, `basicAuth`). `code`: the user enters a code that the client shows beside the link; for clients with API keys. Whoever can make another person enter a code gets tokens of that person.',
        ),
    })
    .describe(
      'Sign-in of users at MCP servers, for targets with `backendAuth.oauth`. Needs `config.database` and `config.session.key`, with which tokens are encrypted.',
    ),
);

export type SignInSettings = z.output<typeof signInSchema>;

function isPage(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(text);
  // Cookies and codes would be read on the way.
  if (protocol === 'http:' && !isLoopbackHost(hostname)) return false;
  const isPlain = !/%2f|%5c/i.test(pathname) && !pathname.endsWith('/');
  return isPlain && search + hash + username + password === '';
}

/** The parameter of a link, whose name says that its value is a credential: logs and traces everywhere omit it. */
export const LINK = 'link_token';

/** The paths below that of the page. */
export const CALLBACK = '/callback';
export const CLIENT_DOCUMENTS = '/client';
