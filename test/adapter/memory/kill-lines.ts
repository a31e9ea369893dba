import { createHash } from 'node:crypto';
import type { BatchLine, FoundBatches } from './kill-batches.ts';
import type { FoundTexts, PageLine } from './kill-texts.ts';

export const SESSION = 'killed';
export const DOCUMENT = 'killed.md';

/** 20 KB each, so that the log of writes is soon long enough to be written back. */
const FILLER = 'a word of forty letters is long enough. '.repeat(500);

export function documentText(version: number, part: number): string {
  return `lemur version ${version} part ${part} ${FILLER}`;
}

/** What a line says of a long text: its beginning, and whether all of it is there. */
export function brief(text: string): string {
  return `${text.slice(0, 40).trimEnd()} ${createHash('sha256').update(text).digest('base64')}`;
}

/** What a store holds after it was opened again. */
export interface Found {
  readonly turns: readonly string[];
  readonly hash: string | undefined;
  /** Chunks that the record of the document names, and those that are there, by word, by vector, by edge. */
  readonly promised: number;
  /** As `brief`. */
  readonly chunks: readonly string[];
  readonly vectors: number;
  readonly edges: number;
  readonly batches: FoundBatches;
}

export type Line =
  | { readonly kind: 'found'; readonly found: Found }
  | { readonly kind: 'texts'; readonly found: FoundTexts }
  | BatchLine
  | PageLine
  | { readonly kind: 'turn'; readonly content: string }
  | { readonly kind: 'document'; readonly version: number };
