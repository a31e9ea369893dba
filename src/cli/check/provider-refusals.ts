import { type CheckResult, fail } from './check.ts';

/** Messages of providers with realms about a missing prerequisite, and what to do about each. */
const KNOWN: readonly (readonly [pattern: RegExp, fix: string])[] = [
  [/HTTPS required/i, "for local tests without TLS set the realm's sslRequired to NONE; not in production"],
  [
    /Account is not fully set up/i,
    'give the user an email address, a first and a last name: the default profile requires them',
  ],
  [
    /Trusted Hosts/i,
    "in the realm's Trusted Hosts policy list the local addresses, turn host-sending-registration-request-must-match off (the provider sees the gateway's address) and keep client-uris-must-match on",
  ],
  [/Web Origins/i, "add the client's origin to the realm's Allowed Registration Web Origins"],
];

/** A failure at the provider with its fix: the one for its message, or `otherwise`. */
export function explain(subject: string, problem: string, otherwise: string): CheckResult {
  return fail(`${subject}: ${problem}`, KNOWN.find(([pattern]) => pattern.test(problem))?.[1] ?? otherwise);
}
