import { z } from 'zod';
import type { Path } from '../../../core/diagnostic.ts';
import { membersOf } from '../../../core/foreign.ts';
import { joinWords } from '../../../core/schema/describe-types.ts';
import { childSchemas, keysOf, objectSchemas, type Schema, schemasAt } from '../../../core/schema/walk.ts';

// A part of a configuration, such as an example of the documentation, that is written in another place than it belongs to.

/** Mappings in which a key is known: their path, as in `gateways.*.routes[]`, and the schemas of the key. */
interface Place {
  readonly at: string;
  readonly mappings: readonly Schema[];
  readonly schemas: readonly Schema[];
}

/** Where in the schema of a file keys are known, besides where a user wrote them. */
export class Places {
  readonly #root: Schema;
  /** Files repeat their mistakes, and finding all places takes some ms. As many as `MAX_FINDINGS`. */
  readonly #byKey = new Map<string, readonly Place[]>();

  constructor(root: Schema) {
    this.#root = root;
  }

  /** The places of a key besides the mapping at `path`: those that accept a value, or all if none does. Undefined if there are too many. */
  ofKey(path: Path, key: string, value: unknown): string | undefined {
    const places = this.#besides(path, key);
    const fitting = fittingPlaces(places, value);
    if (fitting.length > 0) return shownPlaces(fitting);
    // Common names such as `host` are known in many places; listing some of them would not help.
    return places.length === 0 || places.length > MOST_SHOWN ? undefined : shownPlaces(places);
  }

  /**
   * Where a part of a file belongs that was written at its top, such as `policies` of a route: the places that accept it under the same
   * key, or know its keys (unless `isValid`). Undefined if there is none.
   */
  ofPart(key: string, value: unknown, isValid = false): string | undefined {
    const places = this.#besides([], key);
    const fitting = isValid ? validPlaces(places, value) : fittingPlaces(places, value);
    return fitting.length === 0 ? undefined : shownPlaces(fitting);
  }

  #besides(path: Path, key: string): Place[] {
    let places = this.#byKey.get(key);
    if (places === undefined) {
      places = placesOf(this.#root, key);
      this.#byKey.set(key, places);
    }
    const here = objectSchemas(schemasAt(this.#root, path));
    return places.filter(({ mappings }) => !mappings.some((each) => here.includes(each)));
  }
}

/** All mappings below the root that know a key; the shortest path to each, and the shortest first. */
function placesOf(root: Schema, key: string): Place[] {
  const places: Place[] = [];
  const seen = new Set<Schema>();
  let level: { readonly at: string; readonly schemas: readonly Schema[] }[] = [{ at: '', schemas: [root] }];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { at, schemas } of level) {
      const mappings = objectSchemas(schemas);
      if (at !== '' && keysOf(mappings).includes(key))
        places.push({ at, mappings, schemas: mappings.flatMap((each) => childSchemas(each, key)) });
      // What is inside a mapping that several places have is shown below the first of them.
      const objects = mappings.filter((each) => !seen.has(each));
      for (const each of objects) seen.add(each);
      for (const name of keysOf(objects)) {
        next.push({
          at: at === '' ? name : `${at}.${name}`,
          schemas: objects.flatMap((each) => childSchemas(each, name)),
        });
      }
      // A segment that is not a key of a mapping selects the values of a record, a number the items of a list.
      const collections = schemas.filter((each) => objectSchemas([each]).length === 0 && !seen.has(each));
      for (const each of collections) seen.add(each);
      next.push({ at: `${at}.*`, schemas: collections.flatMap((each) => childSchemas(each, '*')) });
      next.push({ at: `${at}[]`, schemas: collections.flatMap((each) => listItems(each)) });
    }
    level = next.filter(({ schemas }) => schemas.length > 0);
  }
  return places;
}

function listItems(schema: Schema): Schema[] {
  const asRecord = new Set(childSchemas(schema, '*'));
  return childSchemas(schema, 0).filter((each) => !asRecord.has(each));
}

/** The places that accept a value; if it has mistakes, those that know its keys. Empty for a text or a number, which says too little. */
function fittingPlaces(places: readonly Place[], value: unknown): readonly Place[] {
  if (typeof value !== 'object' || value === null) return [];
  const valid = validPlaces(places, value);
  if (valid.length > 0) return valid;
  const keys = Object.keys(membersOf(Array.isArray(value) ? value[0] : value));
  if (keys.length === 0) return [];
  return places.filter(({ schemas }) => {
    const inside = Array.isArray(value) ? schemas.flatMap((each) => childSchemas(each, 0)) : schemas;
    const known = keysOf(objectSchemas(inside));
    return keys.every((key) => known.includes(key));
  });
}

const validPlaces = (places: readonly Place[], value: unknown): readonly Place[] =>
  places.filter(({ schemas }) => schemas.some((each) => z.safeParse(each, value).success));

/** The nearest places. */
function shownPlaces(places: readonly Place[]): string {
  const shown = places.slice(0, MOST_SHOWN).map(({ at }) => `\`${at}\``);
  return joinWords(places.length > MOST_SHOWN ? [...shown, 'another place'] : shown);
}

const MOST_SHOWN = 3;
