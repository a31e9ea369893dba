import type { RE2JS } from 're2js';

/** A text condition: equal, or the whole text matches an expression (RE2: linear time on any input). */
export type TextMatcher = { readonly exact: string } | { readonly regex: RE2JS };

/** One entry of a route's `matches[]`, compiled. All parts must hold. */
export interface RequestMatcher {
  readonly path:
    | { readonly kind: 'exact' | 'prefix'; readonly value: string }
    | { readonly kind: 'regex'; readonly value: RE2JS; readonly source: string };
  readonly method?: string;
  readonly headers: readonly { readonly name: string; readonly value: TextMatcher }[];
  readonly query: readonly { readonly name: string; readonly value: TextMatcher }[];
}

export interface Routable {
  /** Breaks the last tie: routes of equal weight are tried in alphabetical order of their key. */
  readonly key: string;
  /** Lower case; empty means any host. `*.example.com` matches every name below it, not the name itself. */
  readonly hostnames: readonly string[];
  readonly matches: readonly RequestMatcher[];
}
