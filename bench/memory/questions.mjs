// Questions for pages: descriptions of a page, removed from it before it is indexed.

/** Subjects that no corpus contains. Written before the first run and not changed since. */
export const OFF_TOPIC = [
  'How long should I boil an egg?',
  'best hiking trails in the Alps',
  'What is the capital of Mongolia?',
  'symptoms of vitamin D deficiency',
  'how to prune an apple tree in winter',
  'Who won the football world cup in 1998?',
  'recipe for sourdough bread',
  'cheap flights from Lisbon to Oslo',
  'how do vaccines work?',
  'difference between a cello and a double bass',
  'When did the Roman Empire fall?',
  'how to remove red wine stains from a carpet',
  'mortgage interest rates this year',
  'What do pandas eat?',
  'exercises against lower back pain',
  'Which planets have rings?',
  'how to write a letter of condolence',
  'learn to play chess openings',
  'tax deduction for working at home',
  'causes of the French Revolution',
  'how to train a puppy to sit',
  'What is the boiling point of ethanol?',
  'wedding speech for a brother',
  'Is it safe to swim after eating?',
  'history of the violin',
  'how to change a flat bicycle tire',
  'What makes the sky blue?',
  'good novels about the sea',
  'how many calories are in an avocado',
  'rules of ice hockey',
  'repairing a leaking kitchen tap',
  'Which mushrooms are poisonous?',
  'how to knit a scarf',
  'population of Brazil',
  'how to apply for a student visa in Canada',
  'why do cats purr?',
  'ingredients of a Greek salad',
  'opening hours of the Louvre',
  'how deep is the Mariana Trench?',
  'treatment of sunburn',
];

/** A text without Markdown and HTML markup, on one line. */
export function plain(text) {
  return text
    .replace(/!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])?/g, ' ')
    .replace(/\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/<[^>]*>/g, ' ')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

const FRONT_MATTER = /^---\n.*?\n---\n/s;

/** The first sentence of prose, and the page without it; undefined for a page without prose. */
export function firstSentence(text) {
  const isProse = (block) => /^[\p{L}`*[_]/u.test(block) && !/^[-*+] /.test(block) && !block.includes('|--');
  for (const block of text.replace(FRONT_MATTER, '').split(/\n{2,}/)) {
    if (!isProse(block)) continue;
    const [sentence = ''] = block.match(/^[\s\S]+?[.:!?](?=\s|$)/) ?? [];
    const question = plain(sentence);
    if (question.split(' ').length < 6) continue;
    return { question, rest: text.replaceAll(sentence, '') };
  }
  return undefined;
}

/** Share of a description's words that makes a sentence of the page count as the same sentence. */
const SAME = 0.8;
const SHORTEST_DESCRIPTION = 4;
/** Characters of prose that must remain, because an empty page cannot be found. */
const SHORTEST_PAGE = 200;

const wordsIn = (text) =>
  plain(text)
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [];

/** A description from elsewhere, and the page without front matter and without sentences that repeat it. */
export function description(text, said) {
  const question = plain(said);
  const words = new Set(wordsIn(question));
  if (words.size < SHORTEST_DESCRIPTION) return undefined;
  const saysTheSame = (sentence) => {
    const there = new Set(wordsIn(sentence));
    return [...words].filter((word) => there.has(word)).length >= SAME * words.size;
  };
  const withoutIt = (block) =>
    (block.match(/^#[^\n]*\n?|[\s\S]+?(?:[.:!?](?=\s|$)|(?=\n#)|$)/gm) ?? [])
      .filter((sentence) => !saysTheSame(sentence))
      .join('');
  const rest = text
    .replaceAll('\r\n', '\n')
    .replace(FRONT_MATTER, '')
    .split(/\n{2,}/)
    .map(withoutIt)
    .join('\n\n');
  return plain(rest).length < SHORTEST_PAGE ? undefined : { question, rest };
}
