import { describe, expect, test } from 'vitest';
import { CEL_FUNCTIONS, CEL_VARIABLES, UNSET_VARIABLES } from '../../src/cli/compatibility/cel-names.ts';
import { COMPATIBILITY } from '../../src/cli/compatibility/names.ts';
import { compatibilityOf, isFunction, isVariable } from '../../src/cli/compatibility/page.ts';

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

test('docs/compatibility.md gives a reason for each variable of expressions that is never set, and for no other', () => {
  // Claims and metadata of a key have any names, so these two could be there.
  const free = ['apiKey.key', 'jwt.rawToken'];
  const unset = CEL_VARIABLES.filter((path) => !isVariable(path));
  expect([...unset, ...free].toSorted()).toEqual(Object.keys(UNSET_VARIABLES).toSorted());
  expect(CEL_FUNCTIONS.filter((name) => !isFunction(name))).toEqual([]);
  expect([isVariable('request.nosuch'), isVariable('nosuch'), isFunction('.nosuch')]).toEqual([
    false,
    false,
    false,
  ]);
});
