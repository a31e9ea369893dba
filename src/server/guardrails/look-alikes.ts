/**
 * Letters of other alphabets that look like one of ASCII: the single ones of the alphabets of Cyrillic, Greek, Armenian, Cherokee,
 * Coptic and Lisu, and of the phonetic alphabet, in confusables.txt of Unicode 13 (UTS #39). There, `I` is confusable with `l`; here,
 * those of capital I stand for it. Why not a package: decision 0103.
 */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  A: 'ΑАᎪꓮ',
  B: 'ꞴΒВᏴꓐ',
  C: 'ϹⲤСᏟꓚ',
  D: 'Ꭰꓓ',
  E: 'ΕЕᎬꓰ',
  F: 'ꞘϜꓝ',
  G: 'ԌᏀᏳꓖ',
  H: 'ΗⲎНᎻꓧ',
  I: 'ƖΙⲒІӀꓲ',
  J: 'ꞲͿЈᎫꓙ',
  K: 'ΚⲔКᏦꓗ',
  L: 'ⳐᏞꓡ',
  M: 'ΜϺⲘМᎷꓟ',
  N: 'ΝⲚꓠ',
  O: 'ΟⲞОՕꓳ',
  P: 'ΡⲢРᏢꓑ',
  R: 'ƦᎡᏒꓣ',
  S: 'ЅՏᏕᏚꓢ',
  T: 'ΤⲦТᎢꓔ',
  U: 'Սꓴ',
  V: 'ѴᏙꓦ',
  W: 'ԜᎳᏔꓪ',
  X: 'ꞳΧⲬХꓫ',
  Y: 'ΥⲨУҮᎩᎽꓬ',
  Z: 'ΖᏃꓜ',
  a: 'ɑαа',
  b: 'ƄЬᏏ',
  c: 'ᴄϲⲥсꮯ',
  d: 'ԁᏧꓒ',
  e: 'ꬲеҽ',
  f: 'ꬵꞙẝք',
  g: 'ɡᶃƍց',
  h: 'һհᏂ',
  i: 'ıɪɩιіꙇꭵᎥ',
  j: 'ϳј',
  l: 'ӏǀ',
  n: 'ոռ',
  o: 'ᴏᴑꬽοσⲟоօ',
  p: 'ρⲣр',
  q: 'ԛգզ',
  r: 'ꭇꭈᴦⲅгꮁ',
  s: 'ꜱƽѕꮪ',
  u: 'ꞟᴜꭎꭒʋυս',
  v: 'ᴠνѵꮩ',
  w: 'ɯᴡѡԝաꮃ',
  x: 'х',
  y: 'ɣᶌʏỿꭚγуү',
  z: 'ᴢꮓ',
};

const PLAIN = new Map(
  Object.entries(LOOK_ALIKES).flatMap(([plain, others]) =>
    [...others].map((other) => [other, plain] as const),
  ),
);
const LETTERS = [...PLAIN.keys()].join('');
const LETTER = new RegExp(`[${LETTERS}]`, 'g');

/** The letters above by alphabet. Those of the phonetic alphabet are Latin, as ASCII is, but of another alphabet here. */
const ALPHABETS = ['Cyrillic', 'Greek', 'Armenian', 'Cherokee', 'Coptic', 'Lisu', 'Latin'].map(
  (script) => `[${LETTERS.replace(new RegExp(`\\P{Script=${script}}`, 'gu'), '')}]`,
);

/**
 * A letter that is beside one of another alphabet, with digits between them at most. Each match begins with such a letter, so that
 * text of ASCII costs nothing, and looks at the digits around it alone, so that all take linear time.
 */
const MIXED = new RegExp(
  ALPHABETS.map((own) => `${own}(?:(?=[0-9_]*(?!${own})[A-Za-z${LETTERS}])|(?<=[A-Za-z][0-9_]*${own}))`).join(
    '|',
  ),
  'g',
);
const WORD_BEFORE = new RegExp(`[\\w${LETTERS}]`);
const WORD_AFTER = new RegExp(`[\\w${LETTERS}]*`, 'y');

/**
 * The text, of the same length, with letters of ASCII in place of those that look alike, in words of several alphabets, as `pаssword` with
 * a letter of Cyrillic. Words of one alphabet stay, with digits, too: in Russian, `сор` is not `cop`.
 */
export function withPlainLetters(text: string): string {
  let plain = '';
  let end = 0;
  for (const { index } of text.matchAll(MIXED)) {
    if (index < end) continue;
    let start = index;
    while (start > end && WORD_BEFORE.test(text.charAt(start - 1))) start -= 1;
    plain += text.slice(end, start);
    WORD_AFTER.lastIndex = start;
    const [word = ''] = WORD_AFTER.exec(text) ?? [];
    plain += word.replace(LETTER, (letter) => PLAIN.get(letter) ?? letter);
    end = start + word.length;
  }
  return end === 0 ? text : plain + text.slice(end);
}
