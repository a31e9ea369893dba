import type { McpAuthenticationConfig } from '../../server/policies/mcp-authentication/index.ts';

type Fix = string | ((policy: McpAuthenticationConfig) => string);

/** By words of the reason; the first that fits. What is left is text that is not a token. */
const FIXES: readonly (readonly [reason: RegExp, fix: Fix])[] = [
  [/audience/, audienceFix],
  [
    /issuer/,
    'request tokens from the host name that `issuer` has; in containers both must use the same name',
  ],
  [/expired|not valid yet|in the future/, 'get a new token, and check the clocks of both machines'],
  [
    /has no `\w+` claim/,
    'have the provider put the claim into its tokens; `jwtValidationOptions.requiredClaims` says which ones they must have',
  ],
  [
    /algorithm/,
    'have the provider sign with a public key, such as RS256, ES256 or EdDSA: `none` and shared secrets (HS256) are never accepted',
  ],
  [
    /unknown key/,
    'the key that the token names is not in the key set: is it a token of this provider, and is `jwks` (if set) its current key set?',
  ],
  [
    /signature of the token is not valid/,
    'the key of that id has not signed this text: is `jwks` (if set) the key set of this provider, and was the token copied unchanged?',
  ],
  [/of type|not an access token/, 'give the access token, not the ID token or another one'],
  [/`kid`/, 'have the provider name the key in the header of its tokens (`kid`)'],
  [
    /three parts/,
    'give the access token of the provider, as one line; one that is not a JWT cannot be checked',
  ],
];

/** What to do about a token that is refused for that reason. */
export function tokenFix(problem: string, policy: McpAuthenticationConfig): string {
  const fix = FIXES.find(([reason]) => reason.test(problem))?.[1];
  if (fix === undefined) return 'give the access token of the provider, as one line';
  return typeof fix === 'string' ? fix : fix(policy);
}

function audienceFix({ audiences, provider }: McpAuthenticationConfig): string {
  const wanted = audiences.join(' or ');
  return provider === undefined
    ? `have the provider issue tokens for ${wanted}, or add to \`audiences\` what its tokens for this gateway have in \`aud\``
    : `add an audience mapper (oidc-audience-mapper, access token claim on) for ${wanted} to the client; without one, \`aud\` is \`account\``;
}
