import { members } from '../kernel/json/json-text.ts';
import type { MeasuredTool } from '../kernel/probe.ts';

/** Longest name that is shown, in characters: names have up to 128 ("Tool Names" of MCP 2025-11-25), but servers send others. */
const SHOWN_NAME = 128;

/** Measures the definition of a tool, given as JSON text. Undefined if it is not an object, which clients do not see. */
export function measuredTool(name: string, definition: string): MeasuredTool | undefined {
  if (!definition.startsWith('{')) return undefined;
  let longest: MeasuredTool['longest'] = { member: '', bytes: 0 };
  for (const [member, { start, end }] of members(definition)) {
    const bytes = Buffer.byteLength(definition.slice(start, end));
    if (bytes > longest.bytes) longest = { member: shortened(member), bytes };
  }
  return { name: shortened(name), bytes: Buffer.byteLength(definition), longest };
}

const shortened = (name: string): string =>
  name.length > SHOWN_NAME ? `${name.slice(0, SHOWN_NAME).toWellFormed()}…` : name;
