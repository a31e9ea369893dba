import type { CompileContext } from '../compile-context.ts';
import { matchesModel, weightOf } from './models.ts';

/** What decides whether an entry of `models` is ever chosen. */
interface Entry {
  readonly name: string;
  readonly visibility: 'public' | 'internal';
}

/**
 * Reports entries of `models` that no request reaches: a name that stands twice is an error, a name that a pattern
 * takes is a warning. A name of both a model and a virtual model is an error where clients could ask for the model:
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
  context.at('models', index, 'name').report(
    other === name
      ? {
          code: 'AGW0106',
          message: `two models are called \`${name}\``,
          label: `the first is in line ${configLine}, and this one would never be asked`,
          help: 'give each model its own name; `virtualModels` share one name among several models',
        }
      : {
          code: 'AGW0303',
          severity: 'warning',
          message: `model \`${name}\` is never asked: \`${other}\` takes its requests`,
          label: `\`${other}\` is in line ${configLine}, and comes first`,
          help: `put \`${name}\` before \`${other}\``,
        },
  );
}
