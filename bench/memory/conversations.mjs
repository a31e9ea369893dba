// Conversations with questions: those of this folder, and LoCoMo (snap-research/locomo, data/locomo10.zip), whose files
// have one long conversation of two people each, with the turns that answer each question.
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('conversations', import.meta.url));
const MINUTE = 60_000;
const AGENT = 'bench';
const ROLES = { user: 'user', assistant: 'assistant', planner: 'assistant' };

/** @param half `development`, `held-out`, `people` or `work` */
export function ownConversations(half) {
  const turns = [];
  let session = '';
  let at = 0;
  for (const line of readFileSync(join(FOLDER, `${half}.txt`), 'utf8').split('\n')) {
    const head = /^== (.+) \| (.+)$/.exec(line);
    if (head !== null) {
      session = head[1];
      at = Date.parse(head[2]);
    }
    const said = /^(?:\{(\w+)\} )?(\w+): (.+)$/.exec(line);
    if (head !== null || said === null) continue;
    const [, label, speaker, text] = said;
    const role = ROLES[speaker];
    turns.push({
      label,
      sessionId: session,
      role: role ?? 'user',
      content: role === undefined ? `${speaker}: ${text}` : text,
      createdAt: new Date(at).toISOString(),
    });
    at += MINUTE;
  }
  const questions = readFileSync(join(FOLDER, `${half}-questions.txt`), 'utf8')
    .split('\n')
    .filter((line) => line.includes('|') && !line.startsWith('#'))
    .map((line) => {
      const [kind, question, labels] = line.split('|').map((part) => part.trim());
      const [answers = '', ...replaced] = labels.split('>').map((part) => part.trim());
      return { kind, question, answers: answers.split(',').map((one) => one.trim()), replaced };
    });
  return { name: half, turns, questions };
}

const KINDS = { 1: 'several turns', 2: 'when', 3: 'inference', 4: 'one turn' };

/** Each conversation of LoCoMo, without the questions that have no answer. */
export function locomo(folder) {
  return globSync('**/*.json', { cwd: folder })
    .sort()
    .map((file) => {
      const given = JSON.parse(readFileSync(join(folder, file), 'utf8'));
      const turns = [];
      for (let number = 1; given[`session_${number}`] !== undefined; number += 1) {
        const start = timeOf(given[`session_${number}_date_time`]);
        for (const [index, { speaker, text, dia_id, blip_caption }] of given[`session_${number}`].entries())
          turns.push({
            label: dia_id,
            sessionId: `session ${number}`,
            role: 'user',
            content: `${speaker}: ${text}${blip_caption === undefined ? '' : ` (${blip_caption})`}`,
            createdAt: new Date(start + index * MINUTE).toISOString(),
          });
      }
      const known = new Set(turns.map(({ label }) => label));
      const questions = given.qa.flatMap(({ question, evidence = [], category }) => {
        const answers = evidence.flatMap((one) => one.split(/[;\s]+/)).filter((one) => known.has(one));
        return KINDS[category] === undefined || answers.length === 0
          ? []
          : [{ kind: KINDS[category], question, answers, replaced: [] }];
      });
      return { name: `LoCoMo ${basename(file, '.json')}`, turns, questions };
    });
}

/** Such as `1:56 pm on 8 May, 2023`. */
function timeOf(text) {
  const [, hour, minute, half, date] = /^(\d+):(\d+) (am|pm) on (.+)$/.exec(text);
  return Date.parse(`${date} ${(Number(hour) % 12) + (half === 'pm' ? 12 : 0)}:${minute} UTC`);
}

/** As lines of an import. */
export function importedTurns(turns) {
  return turns.map(({ label, ...turn }, index) => ({ ...turn, id: `turn-${index}`, agentId: AGENT }));
}
