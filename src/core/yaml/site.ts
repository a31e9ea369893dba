import type { Node, Scalar } from 'yaml';
import type { ScalarSite, ScalarStyle } from './scalar.ts';

const STYLES: Readonly<Record<string, ScalarStyle>> = {
  PLAIN: 'plain',
  QUOTE_SINGLE: 'single',
  QUOTE_DOUBLE: 'double',
  BLOCK_LITERAL: 'literal',
  BLOCK_FOLDED: 'folded',
};

/** The range and style of `node`; undefined for a node that is not in the source. */
export function scalarSite(node: Scalar): ScalarSite | undefined {
  const style = STYLES[node.type ?? ''];
  const range = (node as Node).range;
  if (style === undefined || !range) return undefined;
  const token = node.srcToken;
  const parentIndent = token !== undefined && 'indent' in token ? token.indent : 0;
  return { style, start: range[0], end: range[1], parentIndent };
}
