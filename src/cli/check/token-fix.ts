import type { McpAuthenticationConfig } from '../../server/policies/mcp-authentication/index.ts';

/** What fixes depend on; undefined of a policy that is not for MCP. */
type Policy = Pick<McpAuthenticationConfig, 'audiences' | 'provider'> | undefined;
type Fix = string | ((policy: Policy) => string);

/** Fixes by words of the reason; the first match wins. Anything else is text that is not a token. */
const FIXES: readonly (readonly [reason: RegExp, fix: Fix])[] = [
  [/audience/, audienceFix],
  [/issuer/, 'request tokens with the host name of `issuer`; in containers both must use the same name'],
  [/expired|not valid yet|in the future/, 'get a new token, and check the clocks of both machines'],
  [
    /has no `\w+` claim/,
    'configure the provider to put the claim into its tokens; `jwtValidationOptions.requiredClaims` lists the required claims',
  ],
  [
    /algorithm/,
    'configure the provider to sign with a public key, such as RS256, ES256 or EdDSA: `none` and shared secrets (HS256) are never accepted',
  ],
  [
    /unknown key/,
    'the key that the token names is not in the key set: is the token from this provider, and is `jwks` (if set) its current key set?',
  ],
  [
    /signature of the token is not valid/,
    'the key with that id did not sign this token: is `jwks` (if set) the key set of this provider, and was the token copied unchanged?',
  ],
  [/of type|not an access token/, 'use the access token, not the ID token or another one'],
  [/`kid`/, 'configure the provider to name the key in the header of its tokens (`kid`)'],
  [
    /three parts/,
    'use the access token of the provider, on a single line; a token that is not a JWT cannot be validated',
  ],
];

/** The fix for a token that is refused for the given reason. */
export function tokenFix(problem: string, policy: Policy): string {
  const fix = FIXES.find(([reason]) => reason.test(problem))?.[1];
  if (fix === undefined) return 'use the access token of the provider, on a single line';
  return typeof fix === 'string' ? fix : fix(policy);
}

function audienceFix(policy: Policy): string {
  const wanted = policy?.audiences.join(' or ') ?? 'one of `audiences`';
  return policy?.provider === undefined
    ? `configure the provider to issue tokens for ${wanted}, or add the \`aud\` of its tokens for this gateway to \`audiences\``
    : `add an audience mapper (oidc-audience-mapper, access token claim on) for ${wanted} to the client; without one, \`aud\` is \`account\``;
}
