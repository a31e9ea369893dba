import { CHUNKS, ENCODINGS, EXPECTATIONS, LENGTHS } from './bodies.ts';
import type { Case } from './build.ts';
import { CONNECTIONS, FIELDS, PIPELINES } from './connections.ts';
import { HOSTS, PATHS, REQUEST_LINES } from './targets.ts';

/** Requests on which servers disagree. */
export const CORPUS: readonly Case[] = [
  ...REQUEST_LINES,
  ...PATHS,
  ...HOSTS,
  ...LENGTHS,
  ...ENCODINGS,
  ...CHUNKS,
  ...FIELDS,
  ...CONNECTIONS,
  ...EXPECTATIONS,
  ...PIPELINES,
];
