import { z } from 'zod';

/** A text of at least one character. */
export const nonEmpty = z.string().min(1);

/** A mapping with these keys and no others, with its documentation. */
export const mapping = <Shape extends z.core.$ZodLooseShape>(
  doc: string,
  shape: Shape,
): z.ZodObject<Shape, z.core.$strict> => z.strictObject(shape).describe(doc);
