import { expect, test } from 'vitest';
import { LruMap } from '../../src/core/lru-map.ts';

const keysOf = (map: LruMap<string, string>) => map.values().join('');

test('beyond its size, a map removes what was read or written least recently', () => {
  const map = new LruMap<string, string>(3);
  for (const key of ['a', 'b', 'c']) map.set(key, key);
  expect(map.get('a')).toBe('a');
  map.set('b', 'B');
  map.set('d', 'd');
  expect([keysOf(map), map.size, map.get('c')]).toEqual(['aBd', 3, undefined]);
  // The newest one again.
  map.get('d');
  map.get('a');
  map.set('e', 'e');
  expect(keysOf(map)).toBe('dae');
});

test('beyond its weight, a map removes as many entries as necessary, also a new one', () => {
  const map = new LruMap<string, string>(10, 10);
  for (const key of ['a', 'b', 'c']) map.set(key, key, 3);
  map.set('b', 'B', 4);
  expect(keysOf(map)).toBe('acB');
  map.set('d', 'd', 5);
  expect(keysOf(map)).toBe('Bd');
  for (const key of ['b', 'd', 'd']) map.delete(key);
  map.set('e', 'e', 10);
  map.set('g', 'g');
  expect(keysOf(map)).toBe('eg');
  map.set('f', 'f', 11);
  expect(map.size).toBe(0);
});

test('a map of no entries keeps none', () => {
  const map = new LruMap<string, string>(0);
  map.set('a', 'a');
  expect([map.get('a'), map.size]).toEqual([undefined, 0]);
});
