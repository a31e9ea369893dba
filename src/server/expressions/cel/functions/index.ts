import { bits } from './bits.ts';
import { collections } from './collections.ts';
import { conversions } from './conversions.ts';
import type { FunctionDefinition } from './define.ts';
import { encoding } from './encoding.ts';
import { logFields } from './flatten.ts';
import { http } from './http.ts';
import { json } from './json.ts';
import { math } from './math.ts';
import { network } from './network.ts';
import { optionals } from './optionals.ts';
import { regex } from './regex.ts';
import { strings } from './strings.ts';
import { times } from './times.ts';

/** Every function group of the language, once, under the words that the reference has for it. */
export const FUNCTION_GROUPS: Readonly<Record<string, readonly FunctionDefinition[]>> = {
  'Sizes and contents of strings, lists and maps': collections,
  Strings: strings,
  'Regular expressions (RE2)': regex,
  Conversions: conversions,
  Numbers: math,
  Bits: bits,
  'Times and durations': times,
  'JSON and tokens': json,
  'Encodings, digests and others': encoding,
  'Headers, and URIs with their query': http,
  'IP addresses and networks': network,
  'Optional values': optionals,
  'One field of the access log or attribute of a span for each member': logFields,
};

/** All functions by name (`size`, `.size`, `math.abs`), in the order in which their receivers are tried. */
export const FUNCTIONS: ReadonlyMap<string, readonly FunctionDefinition[]> = Map.groupBy(
  Object.values(FUNCTION_GROUPS).flat(),
  (definition) => definition.name,
);
