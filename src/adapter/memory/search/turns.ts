import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { Store, Turn } from '../store.ts';
import { leavesOpen, states } from './assertions.ts';
import { type LetterSample, letterSample, searchedLetters } from './letters.ts';
import { newestFirst } from './newest-first.ts';
import { queryVector, type Searched } from './query-vector.ts';
import { type QueryWord, queryWords, rarity, rounded, shareOf } from './query-words.ts';
import { type Coverage, calibrated, coverageOf, scoreOf, together, wordScore } from './score.ts';
import {
  type AskedFor,
  askedFor,
  asksForThing,
  isQuestion,
  saidIn,
  speakerOf,
  tellingStems,
  tellsNumber,
  tellsTime,
} from './statements.ts';
import { type Judged, type TurnScope, withSuccessors } from './successors.ts';

/** A search in conversations. */
export interface TurnSearchRequest extends TurnScope {
  readonly limit: number;
}

/** A turn that may answer the question. */
export interface FoundTurn extends Turn {
  /** The name before the colon in a chat of several people, otherwise the role. */
  readonly speaker: string;
  /** From 0 to 1. Turns are ranked by it, and none is left out for a low score. */
  readonly score: number;
  /** `seq` of a later turn among the results that says something else about the same. */
  readonly supersededBy?: number;
}

// Chosen on the development half of `npm run bench memory-turns`.

/** Share of what the turn before has of the query. */
const BY_CONTEXT = 0.4;
/** The same after a question, to which the turn is the answer. */
const BY_QUESTION = 0.7;
/** Share of what the turn after has of the query: a reply often says the same in other words. */
const BY_REPLY = 0.3;
/** What remains of the score of a turn that only asks. */
const ASKING = 0.5;
/** And of one that only supposes, proposes or quotes. */
const OPEN = 0.7;
/** And of one that only denies, where a question asks who, what, where or when. */
const DENYING = 0.8;
/** What remains of a turn that adds nothing to the question, and words that it needs not to be shortened. */
const SHORT = 0.5;
const FEW_WORDS = 8;
/** A turn with a time or a number, if the question asks for one. */
const FITTING = 1.4;
/** Characters of a turn that are compared with the question. */
const COMPARED_LENGTH = 16_000;
/** Turns that are compared with each other, as a multiple of the requested results. */
const COMPARED = 3;

/**
 * Turns that fit a question best, by words, by letters, and by meaning as far as turns have vectors. What was said before
 * a turn is its context: an answer rarely repeats the question. Of turns that contradict each other, the latest is first.
 *
 * @throws the signal's reason
 */
export async function searchTurns(
  searched: Searched,
  request: TurnSearchRequest,
  signal?: AbortSignal,
): Promise<FoundTurn[]> {
  const judged = await judge(searched, request, signal);
  const best = withoutRepetitions(judged).slice(0, COMPARED * request.limit);
  signal?.throwIfAborted();
  let room: number = MEMORY_STORE_LIMITS.turnCharacters;
  const placed = await withSuccessors(searched.store, best, request);
  return newestFirst(placed.slice(0, request.limit), request)
    .filter(({ turn }, index) => {
      room -= turn.content.length;
      return room >= 0 || index === 0;
    })
    .map(({ turn, fused, supersededBy }) => ({
      ...turn,
      speaker: speakerOf(turn),
      score: rounded(calibrated(fused, searched.embedder.scoring.pivot)),
      ...(supersededBy === undefined ? {} : { supersededBy }),
    }));
}

async function judge(
  searched: Searched,
  { query, sessionId, agentId, from, asOf }: TurnSearchRequest,
  signal: AbortSignal | undefined,
): Promise<Judged[]> {
  const { store, embedder } = searched;
  const words = queryWords(query, MEMORY_STORE_LIMITS.queryWords);
  const { vector, unrelated } = await queryVector(searched, query, signal);
  signal?.throwIfAborted();
  const near =
    vector === undefined
      ? []
      : await store.nearest(vector, embedder.id, {
          types: ['chat_message'],
          limit: MEMORY_STORE_LIMITS.candidates,
        });
  const cosines = new Map(
    near.flatMap(({ metadata, cosine }) =>
      typeof metadata['turnId'] === 'string' ? [[metadata['turnId'], cosine] as const] : [],
    ),
  );
  // Turns that are found by their words only are at most as near as the last of the nearest.
  const least =
    near.length < MEMORY_STORE_LIMITS.candidates ? undefined : Math.min(...near.map(({ cosine }) => cosine));
  const { turns, total, counts } = await store.relatedTurns({
    terms: words.flatMap(({ word, parts }) => [word, ...parts.map((part) => part.word)]),
    ids: [...cosines.keys()],
    limit: MEMORY_STORE_LIMITS.candidates,
    sessionId,
    agentId,
    from,
    to: asOf,
  });
  signal?.throwIfAborted();
  if (turns.length === 0) return [];
  const weightOf = ({ word }: QueryWord): number => shareOf(word) * rarity(counts.get(word) ?? 0, total);
  const weights = new Map(words.map((word) => [word.stem, weightOf(word)]));
  const letters = searchedLetters(words, await sampled(store, total), weightOf, shareOf);
  const cover = coverageOf(weights, new Map(), letters);
  const highest = rarity(0, total);
  const coverages = new Map(turns.map((turn) => [turn.seq, cover(fieldsOf(turn))]));
  // What is said anywhere in a session is its subject.
  const sessions = new Map(
    [...Map.groupBy(turns, (turn) => turn.sessionId)].map(([id, some]) => [
      id,
      together(some.flatMap(({ seq }) => coverages.get(seq) ?? [])),
    ]),
  );
  const asked = askedFor(query);
  const isOpenQuestion = asksForThing(query);
  return turns
    .flatMap((turn, index): Judged[] => {
      // Neighbors of what was asked for are only its context.
      if (agentId !== undefined && turn.agentId !== agentId) return [];
      if (from !== undefined && turn.createdAt < from) return [];
      const own = coverages.get(turn.seq);
      if (own === undefined) return [];
      const before = turns.slice(0, index).findLast((one) => one.sessionId === turn.sessionId);
      const context = before === undefined ? undefined : coverages.get(before.seq);
      const share = before !== undefined && isQuestion(before.content) ? BY_QUESTION : BY_CONTEXT;
      const after = turns.slice(index + 1).find((one) => one.sessionId === turn.sessionId);
      const reply = after === undefined ? undefined : coverages.get(after.seq);
      const answered = context === undefined ? own : withContext(own, context, share);
      const passage = reply === undefined ? answered : withContext(answered, reply, BY_REPLY);
      const found = wordScore(weights, highest, passage, sessions.get(turn.sessionId) ?? passage.words);
      const cosineOf = ({ id }: Turn): number | undefined => cosines.get(id) ?? least;
      const cosine = withContextOf(cosineOf(turn), before && cosineOf(before), share);
      const judged = scoreOf(embedder.scoring, found, cosine, unrelated);
      const factor = likelihood(turn, weights, asked, isOpenQuestion);
      const covered = new Map(
        [...own.words].map(([stem, share]) => [stem, share * (weights.get(stem) ?? 0)]),
      );
      return judged.fused <= 0 ? [] : [{ turn, fused: factor * judged.fused, covered }];
    })
    .sort((left, right) => right.fused - left.fused || right.turn.seq - left.turn.seq);
}

/** A session is often named after a person or a subject. */
function fieldsOf(turn: Turn): { title: string; heading: string; searchText: string } {
  return { title: '', heading: turn.sessionId, searchText: turn.content.slice(0, COMPARED_LENGTH) };
}

function withContext(own: Coverage, context: Coverage, share: number): Coverage {
  const words = new Map(own.words);
  for (const [stem, covered] of context.words)
    words.set(stem, Math.max(words.get(stem) ?? 0, share * covered));
  return {
    words,
    neighbors: Math.max(own.neighbors, share * context.neighbors),
    letters: own.letters + share * Math.max(0, context.letters - own.letters),
  };
}

function withContextOf(
  own: number | undefined,
  before: number | undefined,
  share: number,
): number | undefined {
  if (own === undefined || before === undefined) return own;
  return own + share * Math.max(0, before - own);
}

/** How likely a turn is an answer at all, whatever its subject. */
function likelihood(
  turn: Turn,
  weights: ReadonlyMap<string, number>,
  asked: AskedFor,
  isOpenQuestion: boolean,
): number {
  const said = saidIn(turn.content);
  const added = [...tellingStems(turn.content)].filter((stem) => !weights.has(stem)).length;
  const asking = isQuestion(turn.content)
    ? ASKING
    : leavesOpen(said, weights)
      ? OPEN
      : isOpenQuestion && !states(said, weights)
        ? DENYING
        : 1;
  const short = added >= FEW_WORDS ? 1 : SHORT + ((1 - SHORT) * added) / FEW_WORDS;
  const fitting =
    (asked === 'time' && tellsTime(said)) || (asked === 'number' && tellsNumber(said)) ? FITTING : 1;
  return asking * short * fitting;
}

/** Agents repeat what they recall: of equal texts, the latest stays at the place of the best. */
function withoutRepetitions(judged: readonly Judged[]): Judged[] {
  const kept = new Map<string, Judged>();
  for (const one of judged) {
    const text = saidIn(one.turn.content).replace(/\s+/g, ' ').trim().toLowerCase();
    const known = kept.get(text);
    if (known === undefined) kept.set(text, one);
    else if (one.turn.seq > known.turn.seq) kept.set(text, { ...known, turn: one.turn });
  }
  return [...kept.values()];
}

interface Sample {
  readonly total: number;
  readonly letters: Promise<LetterSample>;
}

const samples = new WeakMap<Store, Sample>();
/** A sample is taken again when the number of turns has changed by this share. */
const SAMPLE_CHANGE = 0.05;

function sampled(store: Store, total: number): Promise<LetterSample> {
  const known = samples.get(store);
  if (known !== undefined && Math.abs(known.total - total) <= total * SAMPLE_CHANGE) return known.letters;
  const letters = store
    .searchTurns({ order: 'newest', limit: MEMORY_STORE_LIMITS.sample })
    .then(({ turns }) => letterSample(turns.map(fieldsOf)))
    .catch((error: unknown) => {
      samples.delete(store);
      throw error;
    });
  samples.set(store, { total, letters });
  return letters;
}
