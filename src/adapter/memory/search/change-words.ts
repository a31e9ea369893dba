import { anyOf } from './word-pattern.ts';

// Words that mark a change, by language, in the notation of `anyOf`.

/** Something has ended, although the words may deny: `we do not use it any more`. */
const ENDED = {
  english: [
    'no longer',
    "(?:not|never|cannot|\\p{L}*n['’]t)…any ?more",
    'any ?more',
    '(?:no|not) more',
    'stopped',
    '(?:gave|given|giving) up',
    '(?:get|got|getting|gotten) rid of',
    'dropped',
    'ditched',
    'scrapped',
    'abandoned',
    'discontinued',
    'decommissioned',
    'retired',
    'expired',
    'closed (?:the|down|for good)',
    'went (?:bust|bankrupt|out of business)',
    'binned',
    'phased out',
    'shut down',
    'cancel(?:s|led|ed|ling|ing)?',
    'call(?:ed)? off',
    'off the table',
    'gone off',
    'ha(?:s|ve) left',
    'quit',
    '(?:I|we|you|he|she|they|it) used to',
    'formerly',
    'resigned',
    'stepped down',
    'pulled out',
    'ripped out',
    'withdr(?:ew|awn)',
    'grown out of',
    'traded…(?:in|for)',
    // Only together: whoever bought something may still have what they had before.
    'sold…(?:bought|got|purchased)',
  ],
  german: [
    'nicht mehr',
    'kein*…mehr',
    'nie mehr',
    'nicht länger',
    'aufgehört',
    'aufgegeben',
    'abgeschafft',
    'abgeschaltet',
    'abgesagt',
    'eingestellt',
    'gekündigt',
    'storniert',
    'verworfen',
    'in Rente',
    'ausgeschieden',
    'ausgelaufen',
    'zurückgetreten',
    'weggefallen',
    'entfällt',
    'zugemacht',
    'dichtgemacht',
    'pleite(?:gegangen)?',
    'ausrangiert',
    'hör*…auf$',
    'fällt…weg$',
  ],
} as const;

/** Something has taken the place of something else, or another value. */
const CHANGED = {
  english: [
    'now',
    'nowadays',
    'these days',
    'as of',
    'from now on',
    'going forward',
    'since then',
    'instead',
    'rather than',
    'in place of',
    'in favou?r of',
    'chang~',
    'switch~',
    'swapp~',
    'mov~',
    'relocat~',
    'migrat~',
    'transition~',
    'shifted',
    'replac~',
    'supersed~',
    'succeeded by',
    '(?:takes?|took|taken|taking) over',
    'turn(?:s|ed)? into',
    '(?:went|go(?:es|ing)?|gone|came) from…to',
    '(?:took|take|taken)…off',
    'hand(?:s|ed)?…(?:to|over)',
    'pass(?:es|ed) (?:on )?to',
    '(?:turns|turned) out',
    'becam?e',
    'becomes',
    'renam~',
    '(?:go|goes|gone|going|went|put|puts|putting) (?:up|down)',
    'put off',
    '(?:rose|climbed|grew|jumped|fell|fallen|risen) to',
    '(?:get|got|gets|brought|bring|brings)…(?:down|up) to',
    '(?:cheaper|more expensive)',
    'inherited',
    'from (?:\\p{L}+day|january|february|march|april|may|june|july|august|september|october|november|december) on(?:wards?)?',
    'raised',
    'increased',
    'lowered',
    'reduced',
    'upgrad~',
    'downgrad~',
    'bumped',
    'postpon~',
    'reschedul~',
    'push(?:ed)?…back',
    'brought…forward',
    'extended (?:to|until|by)',
    'doubled',
    'tripled',
    'halved',
    'cut to',
    'decided',
    'decision',
    'settled on',
    'opted for',
    'correction',
    'corrected',
    'misheard',
    'scratch that',
    'start(?:s|ed)? \\p{L}+ing',
    '(?:the|our|my|his|her|their|its) new(?= (?:\\p{L}+ ){1,3}is)',
  ],
  german: [
    'jetzt',
    'nun',
    'nunmehr',
    'inzwischen',
    'mittlerweile',
    'neuerdings',
    'fortan',
    'künftig',
    'ab sofort',
    'ab (?:morgen|heute|nächst*|kommend*|januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|\\p{L}+tag)',
    'seit neuestem',
    'seitdem',
    'umgesattelt',
    'stattdessen',
    'statt',
    'nur noch',
    'anstelle',
    'anstatt',
    'sondern',
    'doch',
    'gewechselt',
    'wechsel(?:n|t|te|ten)',
    'umgezogen',
    'nach \\p{L}+ gezogen',
    'umgestellt',
    'umgestiegen',
    'umbenannt',
    '(?:zieh|zog|stell|steig|stieg|benenn)*…um$',
    'abgelöst',
    '(?:lös|setz|schaff)*…ab$',
    'ersetz*',
    'ausgetauscht',
    'getauscht',
    'verschoben',
    'verlegt',
    'vertagt',
    'geändert',
    'ändert',
    'angepasst',
    'erhöht',
    'angehoben',
    'aufgestockt',
    'herabgesetzt',
    '(?:teurer|billiger|günstiger)',
    'gesenkt',
    'gestiegen',
    'gesunken',
    'verlängert',
    'korrigiert',
    'korrektur',
    'migriert',
    'übernimmt',
    'übernommen',
    'entschieden',
    'entscheidung',
    'beschlossen',
    '(?:wurde|wird) zu[rm]?',
    'neue[rsn]?(?= (?:\\p{L}+ ){1,2}(?:ist|heißt|lautet))',
  ],
} as const;

/** Of scripts without spaces between words. */
const UNSPACED = '現在|今は|変更|やめ|改|现在|不再|换';

const ENDINGS = anyOf(ENDED.english, ENDED.german);
const CHANGE = `${ENDINGS}|${anyOf(CHANGED.english, CHANGED.german)}|${UNSPACED}`;
const ENDING = new RegExp(ENDINGS, 'giu');
const ANY = new RegExp(CHANGE, 'iu');
const EVERY = new RegExp(CHANGE, 'giu');
const FIRST = new RegExp(`^(?:${CHANGE})`, 'iu');

/** Whether a text has words of change, whoever says them and however. */
export function hasChange(text: string): boolean {
  return ANY.test(text);
}

/** Whether the first word marks a change: `move to Porto`. */
export function startsWithChange(text: string): boolean {
  return FIRST.test(text);
}

/** The text without the words that mark a change. */
export function withoutChange(text: string): string {
  return text.replace(EVERY, ' ');
}

/** The text without the words that say that something has ended, so that what is left denies only if the text does. */
export function withoutEnding(text: string): string {
  return text.replace(ENDING, ' ');
}
