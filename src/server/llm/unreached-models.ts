import type { CompileContext } from '../kernel/compile-context.ts';
import { matchesModel, weightOf } from './models.ts';

/** What decides whether an entry of `models` is ever chosen. */
interface Entry {
  readonly name: string;
  readonly visibility: 'public' | 'internal';
  readonly matches?: unknown;
}

/**
 * Warns of entries of `models` that no request reaches, because another one of their name, or a pattern, takes all of
 * them. A name of both a model and a virtual model is an error where clients could ask for the model:
 * the virtual one would always answer, and the list of models would have the name twice.
 */
export function reportUnreachedModels(
  models: readonly Entry[],
  virtualModels: readonly { readonly name: string }[],
  context: CompileContext,
): void {
  for (const [index, entry] of models.entries()) {
    const taking = models.findIndex((other, position) => takes(other, position, entry, index));
    if (taking !== -1) reportTaken(entry.name, index, taking, models, context);
  }
  for (const [index, { name }] of virtualModels.entries()) {
    const model = models.findIndex((entry) => entry.name === name && entry.visibility === 'public');
    if (model === -1) continue;
    const { configLine } = context.at('models', model, 'name').place();
    context.at('virtualModels', index, 'name').report({
      code: 'AGW0106',
      message: `a model and a virtual model are called \`${name}\``,
      label: `the model is in line ${configLine}, and no client would reach it`,
      help: 'give one of them another name, or set `visibility: internal` on the model',
    });
  }
}

/** Whether `other` is chosen wherever `entry` could be: it is tried earlier, and for all of its names and callers. */
function takes(other: Entry, otherIndex: number, entry: Entry, index: number): boolean {
  if (otherIndex === index || (other.visibility === 'internal' && entry.visibility === 'public'))
    return false;
  // What its conditions leave goes on to the next one.
  if (other.matches !== undefined) return false;
  const ahead = weightOf(other.name) - weightOf(entry.name);
  return (ahead > 0 || (ahead === 0 && otherIndex < index)) && covers(other.name, entry.name);
}

/** Whether every name that `inner` matches is one that `outer` matches. A star stands for any text, also none. */
function covers(outer: string, inner: string): boolean {
  if (outer === inner || outer === '*') return true;
  if (!inner.includes('*')) return matchesModel(outer, inner);
  if (outer.endsWith('*')) return inner.endsWith('*') && inner.startsWith(outer.slice(0, -1));
  return outer.startsWith('*') && inner.startsWith('*') && inner.endsWith(outer.slice(1));
}

function reportTaken(
  name: string,
  index: number,
  taking: number,
  models: readonly Entry[],
  context: CompileContext,
): void {
  const other = models[taking]?.name as string;
  const { configLine } = context.at('models', taking, 'name').place();
  const isSameName = other === name;
  context.at('models', index, 'name').report({
    code: 'AGW0303',
    severity: 'warning',
    message: `model \`${name}\` is never asked: ${isSameName ? 'an earlier one of that name' : `\`${other}\``} takes its requests`,
    label: `${isSameName ? 'it' : `\`${other}\``} is in line ${configLine}, and comes first`,
    help: isSameName
      ? 'give the earlier one `matches`, or each model its own name; `virtualModels` share one name among several models'
      : `put \`${name}\` before \`${other}\``,
  });
}
