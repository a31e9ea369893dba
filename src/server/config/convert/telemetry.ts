import { isMap, isScalar, type Pair, type YAMLMap } from 'yaml';
import { ensureMap, mapAt, newPair, pairOf, takePair, textOf } from './yaml-edit.ts';

/** `config.logging.fields` and `.filter`, and `frontendPolicies.logging`, become `frontendPolicies.accessLog`. */
export function convertLogging(root: YAMLMap, changes: string[]): void {
  const frontend = mapAt(root, 'frontendPolicies');
  const alias = frontend && pairOf(frontend, 'logging');
  if (frontend !== undefined && alias !== undefined && !frontend.has('accessLog')) {
    rename(alias, 'accessLog');
    changes.push('frontendPolicies.logging is now frontendPolicies.accessLog');
  }
  const config = mapAt(root, 'config');
  const logging = config && mapAt(config, 'logging');
  if (config === undefined || logging === undefined) return;
  const fields = mapAt(logging, 'fields');
  const moved = [
    ...(fields?.items ?? []).filter(({ key }) => ['add', 'remove'].includes(textOf(key) ?? '')),
    ...[pairOf(logging, 'filter')].filter((pair) => pair !== undefined),
  ];
  if (moved.length === 0) return;
  const accessLog = ensureMap(ensureMap(root, 'frontendPolicies'), 'accessLog');
  const taken = moved.find(({ key }) => accessLog.has(textOf(key)));
  if (taken !== undefined) {
    changes.push(`config.logging is left: frontendPolicies.accessLog has \`${textOf(taken.key)}\` too`);
    return;
  }
  accessLog.items.push(...moved);
  takePair(logging, 'fields');
  takePair(logging, 'filter');
  removeIfEmpty(config, 'logging');
  removeIfEmpty(root, 'config');
  changes.push('fields and filter of config.logging are now in frontendPolicies.accessLog');
}

const TRACING_NAMES: Readonly<Record<string, string>> = {
  otlpEndpoint: 'host',
  otlpProtocol: 'protocol',
  path: 'path',
  randomSampling: 'randomSampling',
  clientSampling: 'clientSampling',
};

/** `config.tracing` becomes `frontendPolicies.tracing`. */
export function convertTracing(root: YAMLMap, changes: string[]): void {
  const config = mapAt(root, 'config');
  const tracing = config && mapAt(config, 'tracing');
  if (config === undefined || tracing === undefined) return;
  if (mapAt(root, 'frontendPolicies')?.has('tracing') === true) {
    changes.push('config.tracing is left: frontendPolicies.tracing exists too');
    return;
  }
  const fields = pairOf(tracing, 'fields');
  const others = tracing.items.filter((pair) => pair !== fields);
  const unknown = others.find(({ key }) => !Object.hasOwn(TRACING_NAMES, textOf(key) ?? ''));
  if (unknown !== undefined) {
    changes.push(`config.tracing is left: frontendPolicies.tracing has no \`${textOf(unknown.key)}\``);
    return;
  }
  for (const pair of others) rename(pair, TRACING_NAMES[textOf(pair.key) ?? ''] ?? '');
  const target = ensureMap(ensureMap(root, 'frontendPolicies'), 'tracing');
  target.items.push(...others);
  for (const pair of isMap(fields?.value) ? fields.value.items : []) {
    if (textOf(pair.key) === 'add') rename(pair, 'attributes');
    target.items.push(pair);
  }
  takePair(config, 'tracing');
  removeIfEmpty(root, 'config');
  changes.push('config.tracing is now frontendPolicies.tracing');
}

function rename(pair: Pair, name: string): void {
  const { key } = newPair(name, '');
  const old = pair.key;
  if (isScalar(key) && isScalar(old)) {
    if (old.commentBefore !== undefined) key.commentBefore = old.commentBefore;
    if (old.spaceBefore !== undefined) key.spaceBefore = old.spaceBefore;
  }
  pair.key = key;
}

function removeIfEmpty(map: YAMLMap, key: string): void {
  if (mapAt(map, key)?.items.length === 0) takePair(map, key);
}
