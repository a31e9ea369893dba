import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';

// Whose a thing is: `my mother's gym`, `the gym of my mother`, `das Studio meiner Mutter`, `Lenas Studio`.

/** The name under which things of the speaker are kept, as in `my gym`. */
const SELF = '';

/** `it's`, `that's`: no genitive. */
const NO_OWNER =
  /^(?:it|that|this|he|she|there|here|what|who|where|when|how|let|one|everything|nothing|all)$/i;
// Each begins where a word does: a long text without spaces would be read again from each of its letters.
const GENITIVE = /(?<![\p{L}-])(\p{L}[\p{L}-]*)['’]s((?:\s+\p{L}+){1,3})/gu;
const OF = /(?<!\p{L})(\p{L}+)\s+of\s+(?:(?:my|our|his|her|their|your)\s+(\p{L}+)|(\p{Lu}\p{L}+))/gu;
/** Not `von meiner Schwester`, which may say by whom. */
const GERMAN_OF = /(?<!\p{L})(\p{L}+)\s+(?:mein|unser|dein|euer|sein|ihr)e[rs]\s+(\p{Lu}\p{L}+)/gu;
/** Not `Das Rad` and `Jedes Rad`. */
const GERMAN_GENITIVE = /(?<!\p{L})(\p{Lu}\p{Ll}+s)\s+(\p{Lu}\p{L}+)/gu;
const OWN = /(?<!\p{L})(?:my|our|mein\p{L}*|unser\p{L}*)((?:\s+\p{L}+(?![\p{L}'’])){1,2})/giu;

/** Whose each of the things is that a question names, by stem; `SELF` for the speaker. */
function ownersIn(said: string, asked: ReadonlySet<string>): Map<string, Set<string>> {
  const owners = new Map<string, Set<string>>();
  const add = (owner: string, things: string): void => {
    for (const stem of wordsOf(things).map(stemOf))
      if (asked.has(stem)) owners.set(stem, (owners.get(stem) ?? new Set()).add(owner));
  };
  for (const [, owner = '', things = ''] of said.matchAll(GENITIVE))
    if (!NO_OWNER.test(owner) && !isStopWord(wordsOf(things)[0] ?? '')) add(nameOf(owner), things);
  for (const [, thing = '', person, name] of said.matchAll(OF)) add(nameOf(person ?? name ?? ''), thing);
  for (const [, thing = '', owner = ''] of said.matchAll(GERMAN_OF)) add(nameOf(owner), thing);
  for (const [, owner = '', thing = ''] of said.matchAll(GERMAN_GENITIVE))
    if (!/^(?:das|.*es)$/i.test(owner)) add(nameOf(owner.slice(0, -1)), thing);
  for (const [, things = ''] of said.matchAll(OWN)) add(SELF, things);
  return owners;
}

/**
 * Whether a turn has of a question that names whose a thing is (`Mira's extension`) only the owner, while another turn has the thing.
 *
 * @param covered stems of the question that the turn has
 * @param known those that the other turn has
 */
export function isOnlyOfOwner(
  query: string,
  covered: ReadonlyMap<string, number>,
  known: ReadonlyMap<string, number>,
): boolean {
  const asked = new Set([...covered.keys(), ...known.keys()]);
  const things = ownersIn(query, asked);
  const owners = new Set([...things.values()].flatMap((one) => [...one]));
  return (
    [...things.keys()].some((thing) => known.has(thing)) &&
    [...covered.keys()].every((stem) => owners.has(stem))
  );
}

function nameOf(owner: string): string {
  return stemOf(wordsOf(owner).join(''));
}

/**
 * Whether a text is about a thing that the question names, but of somebody whom it does not name, and another text about that of somebody
 * else. Texts that do not say whose it is may mean the same one.
 *
 * @param asked stems of the words of the question
 */
export function isOfOtherOwner(said: string, other: string, asked: ReadonlySet<string>): boolean {
  const others = ownersIn(other, asked);
  return [...ownersIn(said, asked)].some(([thing, owners]) => {
    const known = others.get(thing);
    return (
      known !== undefined &&
      ![...owners].some((owner) => known.has(owner) || owner === SELF || asked.has(owner))
    );
  });
}
