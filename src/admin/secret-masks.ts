import type { Range } from '../core/diagnostic.ts';
import type { Redactor } from '../core/redact.ts';
import { LineIndex } from '../core/yaml/lines.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import { secretPlaces } from '../server/config/redact.ts';

/** Placeholder for the secret with that number, counted from 1. */
const PLACEHOLDER = /<redacted:(\d{1,6})>/g;

/**
 * Replaces every secret in the text of a configuration by a placeholder, so that a page can edit the rest. Adds new
 * secrets to `secrets`; equal ones share their number. Returns undefined if the secrets cannot be located.
 */
export function maskSecrets(source: YamlSource, redactor: Redactor, secrets: string[]): string | undefined {
  const places = secretPlaces(source, redactor);
  // A placeholder that a user wrote into the file would be taken for a secret.
  if (places === undefined || source.text.search(PLACEHOLDER) !== -1) return undefined;
  let text = '';
  let at = 0;
  for (const [start, end] of places) {
    const secret = source.text.slice(start, end);
    if (!secrets.includes(secret)) secrets.push(secret);
    text += `${source.text.slice(at, start)}<redacted:${secrets.indexOf(secret) + 1}>`;
    at = end;
  }
  return text + source.text.slice(at);
}

export interface FullText {
  readonly text: string;
  /** Placeholders without a secret. */
  readonly unknown: readonly string[];
  /** Maps a range to the text with placeholders. */
  readonly range: (range: Range) => Range;
}

/** Replaces the placeholders by their secrets. */
export function withSecrets(masked: string, secrets: readonly string[]): FullText {
  const moves: {
    readonly from: number;
    readonly to: number;
    readonly masked: number;
    readonly length: number;
  }[] = [];
  const unknown: string[] = [];
  let text = '';
  let at = 0;
  for (const match of masked.matchAll(PLACEHOLDER)) {
    const secret = secrets[Number(match[1]) - 1];
    if (secret === undefined) {
      unknown.push(match[0]);
      continue;
    }
    text += masked.slice(at, match.index);
    at = match.index + match[0].length;
    moves.push({
      from: text.length,
      to: text.length + secret.length,
      masked: match.index,
      length: match[0].length,
    });
    text += secret;
  }
  text += masked.slice(at);
  const lines = new LineIndex(masked);
  const offset = (full: number, isEnd: boolean): number => {
    const move = moves.findLast(({ from }) => from <= full);
    if (move === undefined) return full;
    if (full >= move.to) return full - move.to + move.masked + move.length;
    return isEnd && full > move.from ? move.masked + move.length : move.masked;
  };
  const range = ({ start, end }: Range): Range =>
    lines.range(offset(start.offset, false), offset(end.offset, true));
  return { text, unknown, range: moves.length === 0 ? (same) => same : range };
}
