import { nearest } from '../../../core/suggest.ts';
import { MCP_METHODS } from '../protocol/protocol.ts';

/** Phases in which a processor checks a method (upstream). */
export type Phases = 'off' | 'request' | 'response' | 'full';

/** Methods on one item of one target, whose parameters and results carry content. */
const ITEM_METHODS = ['tools/call', 'prompts/get', 'resources/read'] as const;

/** Lists have no parameters to check. Their results are checked as the client sees them, of all targets together. */
const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'] as const;

/** Methods and phases that a processor can check. `hasLists`: it can tell names from texts in a list. */
export function checkablePhases(hasLists: boolean): ReadonlyMap<string, Phases> {
  const phases = new Map<string, Phases>(ITEM_METHODS.map((method) => [method, 'full']));
  if (hasLists) for (const method of LISTS) phases.set(method, 'response');
  return phases;
}

/** The phases that both values contain. */
export function commonPhases(one: Phases, other: Phases): Phases {
  if (one === 'full') return other;
  return other === 'full' || one === other ? one : 'off';
}

/** Processors without `methods` check tool calls and their results. */
export const DEFAULT_METHODS: Readonly<Record<string, Phases>> = { 'tools/call': 'full' };

/** A key of `methods`: an exact method, `prefix*`, `*suffix` or `*`. */
export const METHOD_PATTERN = /^(?:\*?[^*]+|[^*]+\*|\*)$/;

/**
 * The phases for a method: those of the most specific key. An exact key wins over `prefix*`, that over `*suffix`, and that
 * over `*`; of two keys of one kind the longer one wins (upstream).
 */
export function phasesOf(method: string, methods: Readonly<Record<string, Phases>>): Phases {
  const [best] = Object.keys(methods)
    .filter((pattern) => rank(pattern, method) > 0)
    .sort((a, b) => rank(b, method) - rank(a, method) || b.length - a.length || (a < b ? -1 : 1));
  return best === undefined ? 'off' : (methods[best] ?? 'off');
}

/** How specific a key is for a method; 0 if it does not match. */
export function rank(pattern: string, method: string): number {
  if (pattern === method) return 4;
  if (pattern === '*') return 1;
  if (pattern.endsWith('*') && method.startsWith(pattern.slice(0, -1))) return 3;
  return pattern.startsWith('*') && method.endsWith(pattern.slice(1)) ? 2 : 0;
}

/** Whether a key of `methods` is a method of MCP or a pattern that matches one. */
export const namesMethod = (key: string): boolean => [...MCP_METHODS].some((method) => rank(key, method) > 0);

/** The key that an unknown one was probably meant to be: of the same form, preferably for a method that is checked. */
export function nearestKey(key: string, checkable: ReadonlyMap<string, Phases>): string | undefined {
  const form = (method: string): string => {
    if (key.endsWith('*')) return method.replace(/[^/]*$/, '*');
    return key.startsWith('*') ? method.replace(/^.*\//, '*/') : method;
  };
  const forms = (methods: Iterable<string>): string[] => Array.from(methods, form);
  return nearest(key, forms(checkable.keys())) ?? nearest(key, forms(MCP_METHODS));
}

/** `tasks/result` returns the result of a tool that ran as a task (MCP 2025-11-25, "Tasks"). */
export const guardedMethod = (method: string): string => (method === 'tasks/result' ? 'tools/call' : method);
