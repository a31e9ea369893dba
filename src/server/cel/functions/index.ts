import { bits } from './bits.ts';
import { collections } from './collections.ts';
import { conversions } from './conversions.ts';
import type { FunctionDefinition } from './define.ts';
import { encoding } from './encoding.ts';
import { http } from './http.ts';
import { json } from './json.ts';
import { math } from './math.ts';
import { network } from './network.ts';
import { optionals } from './optionals.ts';
import { regex } from './regex.ts';
import { strings } from './strings.ts';
import { times } from './times.ts';

/** Every function group of the language, once. */
const GROUPS = [
  collections,
  strings,
  regex,
  conversions,
  math,
  bits,
  times,
  json,
  encoding,
  http,
  network,
  optionals,
] as const;

/** All functions by name (`size`, `.size`, `math.abs`), in the order in which their receivers are tried. */
export const FUNCTIONS: ReadonlyMap<string, readonly FunctionDefinition[]> = Map.groupBy(
  GROUPS.flat(),
  (definition) => definition.name,
);
