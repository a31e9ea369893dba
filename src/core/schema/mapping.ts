import { z } from 'zod';

// Parts of schemas that a configuration has in many places. `doc` is the documentation of the key.

/** A text of at least one character. */
export const nonEmpty = z.string().min(1);

/** A mapping with these keys and no others. */
export const mapping = <Shape extends z.core.$ZodLooseShape>(
  doc: string,
  shape: Shape,
): z.ZodObject<Shape, z.core.$strict> => z.strictObject(shape).describe(doc);

/** A list, which is empty by default. */
export const list = <Item extends z.ZodType>(doc: string, item: Item): z.ZodDefault<z.ZodArray<Item>> =>
  z.array(item).default([]).describe(doc);

/** One of several words. */
export const choice = <const Word extends string>(
  doc: string,
  words: readonly Word[],
  fallback: NoInfer<Word>,
) => z.enum(words).default(fallback).describe(doc);

/** Whether a value is a word for on or off, which says nothing to a key that is neither. */
export const isSwitchWord = (value: unknown): boolean =>
  typeof value === 'boolean' ||
  (typeof value === 'string' && /^(?:on|off|yes|no|true|false|none)$/i.test(value));

/** On or off. */
export const flag = (doc: string, fallback: boolean): z.ZodDefault<z.ZodBoolean> =>
  z.boolean().default(fallback).describe(doc);
