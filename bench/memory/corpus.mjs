// A folder of texts with questions about them: `[[question, [page, …]], …]`, pages as paths in the folder. A question
// without pages is about something else, and nothing should be found.
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { markdownDocument } from '../../src/adapter/memory/markdown/document.ts';

/** A set: pages as they are indexed, questions that have an answer, and those that have none. */
export function corpusSet(folder, questionsFile, offTopic) {
  const files = globSync('**/*.{md,mdx,txt,rst}', { cwd: folder }).map((file) => file.replaceAll('\\', '/'));
  const pages = files.sort().map((file) => {
    const rest = readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n');
    return { file, title: markdownDocument(rest, file).title, rest };
  });
  const known = new Set(files);
  const asked = JSON.parse(readFileSync(questionsFile, 'utf8'));
  for (const [question, answers] of asked)
    for (const page of answers)
      if (!known.has(page)) throw new Error(`${questionsFile}: "${question}": ${page} is not in ${folder}`);
  const unanswerable = asked.flatMap(([question, answers]) => (answers.length === 0 ? [question] : []));
  return {
    name: basename(questionsFile, '.json'),
    pages,
    questions: asked.flatMap(([question, answers]) =>
      answers.length === 0 ? [] : [{ kind: 'written', question, files: answers }],
    ),
    offTopic: unanswerable.length > 0 ? unanswerable : offTopic,
  };
}
