// npm run bench tool-search [-- --tools 1000] [--searches 2000]
// What a search over the tools of large servers costs: time to build the index, and time of a search, without sockets. Tools
// are made of verbs, nouns and texts as long as those of GitHub's API; each search has two to eight words.
import { parseArgs } from 'node:util';
import { ToolIndex } from '../src/server/mcp/tool-search/tool-index.ts';

const { values } = parseArgs({
  options: { tools: { type: 'string', default: '1000' }, searches: { type: 'string', default: '2000' } },
});

const VERBS =
  'create delete update get list search run cancel send upload download move merge approve assign'.split(' ');
const NOUNS =
  'issue pull-request repository branch release workflow comment label milestone team member organization webhook secret variable environment page database row file folder component style project board card invoice customer order payment'.split(
    ' ',
  );
const FILLER =
  'the authenticated user must have access to this resource and the response lists fields of the object with links media types custom properties for authorized owners'.split(
    ' ',
  );

// A linear congruential generator: each run measures the same tools and searches.
let state = 1;
const random = (count) => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state % count;
};
const any = (words) => words[random(words.length)];
const several = (count, words) => Array.from({ length: count }, () => any(words)).join(' ');

const tools = Array.from({ length: Number(values.tools) }, (_, at) => {
  const [verb, noun, other] = [any(VERBS), any(NOUNS), any(NOUNS)];
  const name = `server${at % 5}_${verb}_${noun}_${other}_${at}`;
  const parameters = Array.from({ length: 8 }, () => [`${any(NOUNS)}_${any(FILLER)}`, { type: 'string' }]);
  const tool = {
    name,
    title: `${verb} a ${noun} of a ${other}`,
    description: `${verb}s a ${noun}. ${several(120, [...FILLER, ...NOUNS, ...VERBS])}.`,
    inputSchema: { type: 'object', properties: Object.fromEntries(parameters) },
  };
  return { words: name, text: JSON.stringify(tool) };
});

const before = performance.now();
const index = await ToolIndex.of(tools);
const built = performance.now() - before;

const searchOnce = () => {
  const query = `${any(VERBS)} ${several(1 + random(7), [...NOUNS, ...NOUNS, ...FILLER])}`;
  const since = performance.now();
  index.search(query);
  return performance.now() - since;
};
for (let warm = 0; warm < 200; warm += 1) searchOnce();
const times = Array.from({ length: Number(values.searches) }, searchOnce).sort((one, other) => one - other);
const at = (share) => times[Math.floor(share * (times.length - 1))].toFixed(2);
process.stdout.write(
  `${tools.length} tools: index ${built.toFixed(0)} ms; ${times.length} searches: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, slowest ${at(1)} ms\n`,
);
