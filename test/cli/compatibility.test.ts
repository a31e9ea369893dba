import { describe, expect, test } from 'vitest';
import { COMPATIBILITY } from '../../src/cli/compatibility/names.ts';
import { compatibilityOf } from '../../src/cli/compatibility/page.ts';

describe.each(COMPATIBILITY)('docs/compatibility.md: $title', (place) => {
  const { names, missing = {}, at } = place;

  test(`the schema accepts what works: ${at}`, () => {
    const refused = names.filter(({ name, isBuilt }) => isBuilt && !compatibilityOf(place, name).isAccepted);
    expect(refused).toEqual([]);
  });

  test(`the schema refuses what is not built, with a reason: ${at}`, () => {
    for (const { name } of names.filter(({ isBuilt }) => !isBuilt))
      expect({ name, ...compatibilityOf(place, name) }).toEqual({
        name,
        isAccepted: false,
        // `is a field of`, `a similar name`: the schema has nothing to say of this key.
        reason: expect.stringMatching(/^(?!.*(?:is a field of|similar name)).{10,}/),
      });
  });

  test(`the schema refuses what is missing from what works in part: ${at}`, () => {
    for (const [name, parts] of Object.entries(missing)) {
      expect(names).toContainEqual({ name, isBuilt: true });
      const below = `${at}.${name}`;
      for (const part of parts)
        expect({ part, ...compatibilityOf({ at: below }, part) }).toMatchObject({ part, isAccepted: false });
    }
  });
});
