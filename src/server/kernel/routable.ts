import type { RE2JS } from 're2js';

/** A condition on a text: it is equal, or a regular expression matches all of it (RE2: linear time on any input). */
export type TextMatcher = { readonly exact: string } | { readonly regex: RE2JS };

/** A compiled entry of a route's `matches[]`. All its conditions must be met. */
export interface RequestMatcher {
  readonly path:
    | { readonly kind: 'exact' | 'prefix'; readonly value: string }
    | { readonly kind: 'regex'; readonly value: RE2JS; readonly source: string };
  readonly method?: string;
  readonly headers: readonly { readonly name: string; readonly value: TextMatcher }[];
  readonly query: readonly { readonly name: string; readonly value: TextMatcher }[];
}

/** The part of a route that the router needs. */
export interface Routable {
  /** Final tie-breaker: routes of equal precedence are tried in alphabetical order of their keys. */
  readonly key: string;
  /** In lower case; empty means any host. `*.example.com` matches all its subdomains, but not `example.com`. */
  readonly hostnames: readonly string[];
  readonly matches: readonly RequestMatcher[];
}
