import { type Document, isMap, type ParsedNode, parseDocument, type YAMLMap } from 'yaml';
import { convertBinds } from './binds.ts';
import { convertLlmPort } from './llm-port.ts';
import { convertLogging, convertTracing } from './telemetry.ts';

export interface Conversion {
  readonly text: string;
  /** What was changed, and what was left as it is and why, in words. */
  readonly changes: readonly string[];
}

/** A conversion of one former form. Adds a line to `changes` for each thing that it changes. */
export type ConversionStep = (root: YAMLMap, changes: string[]) => void;

const STEPS: readonly ConversionStep[] = [convertBinds, convertLlmPort, convertLogging, convertTracing];

/**
 * Rewrites former forms of a configuration in the current one. Comments are kept, and references to environment variables
 * stay as they are. Text that is not a YAML mapping is returned unchanged, because its mistakes have to be corrected first.
 */
export function convertConfig(text: string): Conversion {
  const document: Document.Parsed<ParsedNode> = parseDocument(text, { uniqueKeys: false });
  const root = document.contents as unknown;
  if (document.errors.length > 0 || !isMap(root)) return { text, changes: [] };
  const changes: string[] = [];
  for (const step of STEPS) step(root, changes);
  if (changes.length === 0) return { text, changes };
  return { text: document.toString({ lineWidth: 0 }), changes };
}
