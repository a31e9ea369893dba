export const SESSION = 'killed';
export const DOCUMENT = 'killed.md';

export function documentText(version: number, part: number): string {
  return `lemur version ${version} part ${part}`;
}

/** What a store holds after it was opened again. */
export interface Found {
  readonly turns: readonly string[];
  readonly hash: string | undefined;
  /** Chunks that the record of the document names, and those that are there, by word, by vector, by edge. */
  readonly promised: number;
  readonly chunks: readonly string[];
  readonly vectors: number;
  readonly edges: number;
}

export type Line =
  | { readonly kind: 'found'; readonly found: Found }
  | { readonly kind: 'turn'; readonly content: string }
  | { readonly kind: 'document'; readonly version: number };
