import { anyOf } from './word-pattern.ts';

// Words by which a clause does not say how things are, by language, in the notation of `anyOf`.

/** First words of a sentence that is a supposition as a whole. */
const CONDITIONS = {
  english: [
    '(?:and |but |so |only |even |or )?(?:if|unless)',
    'what if',
    'suppos~',
    'assum~',
    'imagine',
    'in case',
    'had (?:I|we|you|he|she|they)',
    'were (?:I|we|you|they)',
  ],
  german: [
    '(?:und |aber |auch |nur |selbst |oder )?(?:wenn|falls)',
    'sofern',
    'angenommen',
    'gesetzt',
    'stell* (?:dir|euch) vor',
    '(?:wär|hätt|würd|könnt|sollt)* (?:ich|wir|du|ihr|er|sie|es|der|die|das|man)',
    'was wär*',
  ],
} as const;

/** Anywhere in a clause: what might be, what is wished for, planned or proposed. */
const SUPPOSED = {
  english: [
    'if',
    'unless',
    'whether',
    'maybe',
    'perhaps',
    'possibly',
    'probably',
    'might',
    'may (?:be|have|get|go|need|well|also|change|move|switch|drop|replace|leave|stop)',
    'any chance',
    'allegedly',
    'supposedly',
    'rumou?r*',
    'voted against',
    '(?:was|were|got|been) rejected',
    'could',
    'would',
    "(?:I|we|you|he|she|they)['’]d",
    'shall',
    'suppose',
    'wonder(?:s|ed|ing)?',
    'consider(?:s|ed|ing)?',
    'propos(?:e[sd]?|ing|al)',
    'suggest(?:s|ed|ing)?',
    '(?:think|thinking|thought|talk|talked|talking) (?:about|of)',
    'we should',
    'should we',
    "let['’]?s",
    'plan(?:s|ned|ning)? to',
    'hop~ to',
    '(?:want|like|love)s? to',
    'wish',
    'dream(?:ed|t|ing)?',
    'pretend(?:ed|ing)?',
    'almost',
    'nearly',
  ],
  german: [
    'wenn',
    'falls',
    'ob',
    'vielleicht',
    'eventuell',
    'möglicherweise',
    'womöglich',
    'vermutlich',
    'wahrscheinlich',
    'wohl',
    'angeblich',
    'gerücht*',
    'abgelehnt',
    '(?:könnt|sollt|würd|wär|hätt|möcht|dürft)e(?:st|n|t)?',
    'überleg*',
    'erwäg*',
    'vorschlag',
    'schlag*…vor',
    'fast',
    'beinahe',
    'planen',
    'lasst uns',
  ],
} as const;

/** A clause without a subject of its own that begins so goes on with the one before it. */
const CONTINUED = ['that', 'to', 'or', 'then', 'dass', 'ob', 'oder', 'dann'] as const;

/** Questions in chats often have no question mark: a verb, then a subject. */
const ASKING = {
  before: '(?:(?:and|but|so|wait|hey|und|aber|also|na)\\s)*',
  verbs:
    'did|do|does|have|has|had|is|are|was|were|will|can|shall|hat|hast|habt|haben|ist|sind|seid|war|waren|wird|werden|wurde|wurden|kann|können|soll|sollen',
  subjects: [
    '(?:I|we|you|he|she|it|they|the|our|my|your|this|that|there)',
    '(?:any|some)(?:one|body|thing)',
    '(?:ich|wir|du|ihr|er|sie|es|der|die|das|jemand)',
    '(?:unser|mein|dein)*',
  ],
} as const;

/** Verbs of somebody who is quoted. */
const SAYING = {
  english: [
    'sa(?:id|ys?|ying)',
    '(?:tell|told)s?',
    'wrote',
    'writes?',
    'ask(?:s|ed)?',
    'claim(?:s|ed)?',
    'like',
  ],
  german: ['sag*', 'mein(?:t|te|ten)', 'schr(?:ie|ei)b*', 'frag*', 'behaupt*', 'rief', 'laut'],
} as const;

const DENIALS = {
  english: [
    'not',
    'never',
    'cannot',
    "\\p{L}+n['’]t",
    'none',
    'nobody',
    'nothing',
    'neither',
    // `No, we moved` is written without the comma too.
    'no(?! (?:longer|I|we|you|he|she|it|they|the|my|our|this|that) )(?= )',
  ],
  german: ['nicht', 'kein*', 'nie', 'niemals', 'niemand', 'nichts', 'weder'],
} as const;

/** They deny nothing of the fact. */
const NO_DENIALS = {
  english: [
    "(?:do not|don['’]t|never) (?:forget|worry|mind|panic)",
    'not (?:only|just|to mention)',
    'why not',
    'no (?:problem|worries|doubt|matter|objections?)',
    "(?:not|\\p{L}+n['’]t)…but",
  ],
  german: ['nicht (?:nur|vergessen|wahr)', 'nicht…sondern', 'kein problem', 'keine (?:sorge|frage)'],
} as const;

export const CONDITION = new RegExp(`^${anyOf(CONDITIONS.english, CONDITIONS.german)}`, 'iu');
export const SUPPOSITION = new RegExp(anyOf(SUPPOSED.english, SUPPOSED.german), 'iu');
/** Or an infinitive: `…, es zu ersetzen`. */
export const CONTINUATION = new RegExp(`^${anyOf(CONTINUED)}|(?<!\\p{L})zu \\p{L}+n\\P{L}*$`, 'iu');
export const QUESTION = new RegExp(
  `^${ASKING.before}(?:${ASKING.verbs})(?:n['’]t)?\\s${anyOf(ASKING.subjects)}`,
  'iu',
);
/** The same with a name: `is Jira replaced`, but not `was moved to Friday`, which lacks its subject. */
export const QUESTION_OF_NAME = new RegExp(
  `^(?:\\p{Lu}?\\p{Ll}+, )?(?:${ASKING.verbs}|${ASKING.verbs.replace(/\b\p{Ll}/gu, (first) => first.toUpperCase())}) \\p{Lu}`,
  'u',
);
export const SPEECH = new RegExp(anyOf(SAYING.english, SAYING.german), 'iu');
export const DENIAL = new RegExp(`${anyOf(DENIALS.english, DENIALS.german)}|没|沒|ません`, 'iu');
export const NO_DENIAL = new RegExp(anyOf(NO_DENIALS.english, NO_DENIALS.german), 'giu');
