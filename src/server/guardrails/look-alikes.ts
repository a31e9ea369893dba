/**
 * Letters of other alphabets that look like one of ASCII: the single ones of the alphabets of Cyrillic, Greek, Armenian, Cherokee,
 * Coptic and Lisu, and of the phonetic alphabet, in confusables.txt of Unicode 13 (UTS #39). There, `I` is confusable with `l`; here,
 * those of capital I stand for it.
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
const OTHERS = [...PLAIN.keys()].join('');

/** Whether a text may have a word with both: most have none, and this test takes linear time. */
const BESIDE = new RegExp(`[${OTHERS}][0-9_]{0,8}[A-Za-z]|[A-Za-z][0-9_]{0,8}[${OTHERS}]`);
const WORD = new RegExp(`[A-Za-z0-9_${OTHERS}]+`, 'g');
const LATIN = /[A-Za-z]/;

/**
 * The text, of the same length, with letters of ASCII in place of those that look alike and are beside some, as in `pаssword` with a
 * letter of Cyrillic. Words of one alphabet stay: in Russian, `сор` is no `cop`.
 */
export function withPlainLetters(text: string): string {
  if (!BESIDE.test(text)) return text;
  return text.replace(WORD, (word) =>
    LATIN.test(word) ? [...word].map((letter) => PLAIN.get(letter) ?? letter).join('') : word,
  );
}
