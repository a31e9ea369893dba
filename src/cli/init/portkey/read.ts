import { isRecord, membersOf } from '../../../core/foreign.ts';
import { type Imported, NotImported } from '../imported.ts';
import type { PlaceholderContext } from '../placeholders.ts';
import { literalWithout } from '../values.ts';
import { variableName } from '../variables.ts';
import { CONNECTION_KEYS, connection, keysWithout } from './connection.ts';
import { guardrailsOf } from './guardrails.ts';
import { Lost } from './lost.ts';
import { cacheOf, retryOf, timeoutOf } from './policies.ts';
import { type Routing, routingOf } from './routing.ts';
import { type Leaf, treeOf } from './tree.ts';

type Entry = Readonly<Record<string, unknown>>;

/** Whether a file is a config object of Portkey: targets and how one is chosen, or a provider. */
export const isPortkey = (value: unknown): value is Entry =>
  isRecord(value) &&
  (Array.isArray(value['targets']) ||
    ['strategy', 'retry', 'cache'].some((key) => isRecord(value[key])) ||
    ['provider', 'virtual_key'].some((key) => typeof value[key] === 'string'));

/** Every model name is accepted, and the targets get it unless they replace it. */
const ANY = '*';

/** Adds what a config object of Portkey has: a model for each target, and what chooses one of them. */
export function readPortkey(config: Entry, context: PlaceholderContext, imported: Imported): void {
  const lost = new Lost(context.source);
  const routing = routingOf(treeOf(config, lost), lost);
  context.variables.reserve(routing.leaves.flatMap(keysWithout));
  const names = addModels(routing, { context, lost }, imported);
  const choice = routing.write((leaf) => names.get(leaf));
  if (choice !== undefined)
    imported.virtualModels.push({ source: context.source, value: { name: ANY, routing: choice } });
  const known = routing.leaves.filter((leaf) => names.has(leaf));
  const found = {
    timeout: timeoutOf(known, lost),
    retry: retryOf(known, routing.failures.size > 1, lost),
  };
  for (const [key, value] of Object.entries(found)) {
    if (value === undefined) continue;
    if (key in imported.policies) lost.add(`llm.policies.${key}`, 'that of another file is used');
    else imported.policies[key] = value;
  }
  imported.leftOut.push(...lost.lines);
}

interface At {
  readonly context: PlaceholderContext;
  readonly lost: Lost;
}

/** Adds the model of each target. Returns their names. */
function addModels({ leaves, failures, write }: Routing, at: At, imported: Imported): Map<Leaf, string> {
  const isAlone = write(() => '') === undefined;
  const names = new Map<Leaf, string>();
  for (const leaf of leaves) {
    try {
      const model = modelOf(leaf, isAlone, at);
      const name = isAlone ? ANY : `${unused(labelOf(leaf), names)}/*`;
      const failure = failures.get(leaf);
      const value = {
        name,
        ...(!isAlone && { visibility: 'internal' }),
        ...model,
        // Portkey leaves no target alone after a failure.
        ...(failure !== undefined && {
          health: { unhealthyExpression: failure, eviction: { healthThreshold: 0 } },
        }),
      };
      names.set(leaf, name);
      imported.models.push({ source: at.context.source, value });
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      const what = `${leaf.place === '' ? 'the provider' : leaf.place} in ${at.context.source}`;
      imported.leftOut.push({ what, reason: error.message, isWarning: true });
    }
  }
  return names;
}

const READ = [
  ...['name', 'weight', 'strategy', 'targets', 'retry', 'cache', 'request_timeout'],
  ...['before_request_hooks', 'after_request_hooks', 'input_guardrails', 'output_guardrails'],
  ...['default_input_guardrails', 'default_output_guardrails', 'index', 'id'],
];

function modelOf(leaf: Leaf, isAlone: boolean, { context, lost }: At): Entry {
  const { settings, place } = leaf;
  const owner = place === '' ? labelOf(leaf) : place;
  const { provider, params, ...connected } = connection({ settings, owner, context, lost });
  lost.addRest(settings, [...CONNECTION_KEYS, ...READ], { owner });
  const { model: _model, ...overrides } = membersOf(settings['override_params']);
  const cache = cacheOf(settings, owner, lost);
  const guardrails = guardrailsOf(settings, owner, lost);
  return {
    provider,
    params: { ...(!isAlone && { model: ANY }), ...membersOf(params) },
    ...connected,
    ...(Object.keys(overrides).length > 0 && {
      overrides: membersOf(
        literalWithout(overrides, (key, value) =>
          context.variables.reference(
            variableName(`${owner}_${key}`),
            value,
            owner,
            `${owner} in ${context.source}`,
          ),
        ),
      ),
    }),
    ...(guardrails !== undefined && { guardrails }),
    ...(cache !== undefined && { cache }),
  };
}

/** The name of a target, or that of its provider, without signs that names of models or patterns have. */
function labelOf({ name, settings }: Leaf): string {
  const given = [name, settings['provider'], settings['virtual_key']].find(
    (each) => typeof each === 'string',
  );
  const plain = String(given ?? '')
    .replaceAll(/[*@$\s]/g, '')
    .replaceAll('/', '-');
  return plain === '' ? 'target' : plain;
}

function unused(label: string, names: ReadonlyMap<Leaf, string>): string {
  const taken = new Set(names.values());
  const candidates = [
    label,
    ...Array.from({ length: taken.size + 1 }, (_, index) => `${label}-${index + 2}`),
  ];
  return candidates.find((each) => !taken.has(`${each}/*`)) ?? label;
}
