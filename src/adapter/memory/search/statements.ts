import type { Turn } from '../store.ts';
import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';

/** A name before a colon, as chats of several people are stored: `Ann Lee: hello`. */
const SPEAKER = /^(\p{Lu}[\p{L}\p{M}.'’-]*(?: \p{Lu}[\p{L}\p{M}.'’-]*){0,2}): /u;

/** Words before a colon that name nobody: `Note: …`, `TODO: …`, `Hinweis: …`. */
const LABEL =
  /^(?:(?:side )?note[sd]?|to-?do|fixme|fyi|ps|p\.s\.|nb|tl;?dr|warning|caution|attention|important|errors?|bugs?|fix|info|questions?|answers?|q|updates?|edit|corrections?|summary|hints?|tips?|examples?|results?|outputs?|inputs?|reminder|decisions?|goals?|actions?(?: items?)?|next steps?|steps?|plans?|context|status|subject|title|topic|date|time|deadline|location|address|urls?|links?|files?|re|fwd|hinweis|notiz|achtung|wichtig|fehler|frage|antwort|zusammenfassung|beispiel|ergebnis|erinnerung|entscheidung|ziel|korrektur|nachtrag|betreff|datum|ort|termin)$/i;

/** The name before the colon, in chats of several people. */
export function nameOf({ content }: Pick<Turn, 'content'>): string | undefined {
  const name = SPEAKER.exec(content)?.[1];
  return name === undefined || LABEL.test(name) ? undefined : name;
}

/** Who says the turn: the name before the colon, or the role. */
export function speakerOf(turn: Pick<Turn, 'content' | 'role'>): string {
  return nameOf(turn) ?? turn.role;
}

const OF_ONESELF = /\b(?:I|my|me|mine|ich|mein\w*|mir|mich)\b|我|私|僕|俺/u;

export function saysOfOneself(said: string): boolean {
  return OF_ONESELF.test(said);
}

/** The text without the name of its speaker. */
export function saidIn(content: string): string {
  return nameOf({ content }) === undefined ? content : content.replace(SPEAKER, '');
}

/** Whether a turn only asks: it is the context of an answer and no answer. */
export function isQuestion(content: string): boolean {
  const sentences = saidIn(content)
    .split(/(?<=[.!?。！？])\s*/u)
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
  return sentences.length > 0 && /[?？]\s*$/u.test(sentences.at(-1) ?? '') && sentences.length <= 2;
}

const PAST =
  /\b(did|were|had|originally|previously|formerly|first|used to|back then|before|ago|hatten?|waren?|wurden?|in the past|früher|ursprünglich|damals|zuerst|vorher)\b|でした|ましたか|以前|曾经|之前/iu;
/** In English. In German it asks for a thing: `was kostet …`, `weißt du, was wir …`. */
const WAS =
  /^[Ww]as (?=(?:the|an?|my|our|your|his|her|its|their|it|he|she|I|there|this|that)\b|\p{Lu})|\S was (?!(?:wir|ich|er|sie|es|ihr|du|man|der|die|das)(?!\p{L}))/u;

/** `Monday or Tuesday?`: which of two values is right. */
const CHOICE = /\b(or|oder)\b|それとも|还是/iu;

export function asksForChoice(query: string): boolean {
  return CHOICE.test(query);
}

/** Whether a question is about how things were. */
export function asksForPast(query: string): boolean {
  return (PAST.test(query) || WAS.test(query.trim())) && !asksForChoice(query);
}

const THING =
  /(?<!\p{L})(?:who|whom|whose|what|which|where|when|how|wer|wen|wem|wessen|was|welche\p{L}*|wo|wohin|woher|wann|wie|womit)(?!\p{L})/iu;
/** `What did they not deliver` */
const DENIED = /(?<!\p{L})(?:not|never|\p{L}+n['’]t|nicht|nie|kein\p{L}*)(?!\p{L})/iu;

/** Whether a question asks for a thing, person, place or time, so that what it is not is hardly an answer. */
export function asksForThing(query: string): boolean {
  return THING.test(query) && !DENIED.test(query);
}

/** Whether a question asks why: a later reason does not replace an earlier one, as a later value does. */
export function asksForReason(query: string): boolean {
  return /^(?:why|how come|warum|wieso|weshalb)(?!\p{L})/iu.test(query.trim());
}

/** What an answer must contain. */
export type AskedFor = 'time' | 'number' | undefined;

const ASKS_TIME =
  /\b(when|what (?:date|day|time|year|month)|which (?:date|day|year|month)|dates?|how long|until|since|deadline|wann|seit wann|bis wann|datum|tag)\b|いつ|何時|何日|什么时候|几点|哪天|日期/iu;
const ASKS_NUMBER =
  /\b(how (?:much|many|fast|far|old|big|tall|often)|number|amount|cost|price|fee|total|maximum|minimum|size|width|wie ?viele?|wie (?:oft|alt|gro\u00df|lange)|kosten|preis)\b|いくら|いくつ|何人|多少|几个/iu;

export function askedFor(query: string): AskedFor {
  if (ASKS_NUMBER.test(query)) return 'number';
  return ASKS_TIME.test(query) ? 'time' : undefined;
}

const TIME =
  /\b(?:\d{1,2}[:.]\d{2}|\d{1,2}(?:st|nd|rd|th)|(?:19|20)\d{2}|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october|november|december|today|tomorrow|yesterday|tonight|noon|midnight|spring|summer|autumn|winter|(?:last|next|this) (?:week|month|year|weekend)|weeks?|months?|years?|januar|februar|m\u00e4rz|mai|juni|juli|oktober|dezember|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|heute|morgen|gestern|woche|monat|jahr)\b|\d{1,2}\. ?\p{Lu}|\d[年月日時]/iu;
const NUMBER = new RegExp(
  [
    '\\d',
    '\\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen)s?\\b',
    '\\b(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty|(?:hundred|thousand|dozen)s?|half|twice|once)\\b',
    // `fünfundzwanzig`, but no other word with a number in it.
    '(?<!\\p{L})(?:ein(?=und|hundert|tausend)|zwei|drei|vier|fünf|sechs?|sieb(?:en)?|acht|neun|zehn|elf|zwölf|zwan|(?<=\\p{L})(?:und|zig|ßig)|hundert|tausend)+(?!\\p{L})',
  ].join('|'),
  'iu',
);

export function tellsTime(text: string): boolean {
  return TIME.test(text);
}

export function tellsNumber(text: string): boolean {
  return NUMBER.test(text);
}

/** The words of a text that say something. */
export function tellingWords(content: string): string[] {
  return [...new Set(wordsOf(saidIn(content)))].filter((word) => word.length > 1 && !isStopWord(word));
}

export function tellingStems(content: string): Set<string> {
  return new Set(tellingWords(content).map(stemOf));
}
