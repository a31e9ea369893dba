// Draws the curves of `bench growth` as SVG, which docs/benchmarks.md shows.

const WIDTH = 720;
const HEIGHT = 320;
const [LEFT, RIGHT, TOP, BOTTOM] = [48, 110, 16, 40];
/** Colors of the Okabe-Ito palette, which colour-blind readers can tell apart, on a white or dark page. */
const COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00'];
const GRAY = '#808080';
/** Lines of the scale. */
const STEPS = 4;

/** `counts` on a logarithmic axis; `lines`: `{ name, micros }` with one figure for each count, from zero. */
export function curves(counts, lines) {
  const highest = Math.max(...lines.flatMap(({ micros }) => micros));
  const step = niceStep(highest / STEPS);
  const top = Math.ceil(highest / step) * step;
  const decades = Math.log10(counts.at(-1) / counts[0]) || 1;
  const x = (count) => LEFT + (Math.log10(count / counts[0]) / decades) * (WIDTH - LEFT - RIGHT);
  const y = (micros) => HEIGHT - BOTTOM - (micros / top) * (HEIGHT - TOP - BOTTOM);
  const text = (left, base, content, more = '') =>
    `<text x="${left.toFixed(1)}" y="${base.toFixed(1)}" ${more}>${content}</text>`;
  const parts = [];
  for (let micros = 0; micros <= top; micros += step)
    parts.push(
      `<path d="M${LEFT} ${y(micros).toFixed(1)}H${WIDTH - RIGHT}" stroke="${GRAY}" stroke-opacity=".3"/>`,
      text(LEFT - 8, y(micros) + 4, micros, `fill="${GRAY}" text-anchor="end"`),
    );
  for (const count of counts)
    parts.push(
      text(
        x(count),
        HEIGHT - BOTTOM + 18,
        count.toLocaleString('en-US'),
        `fill="${GRAY}" text-anchor="middle"`,
      ),
    );
  const bases = spread(lines.map(({ micros }) => y(micros.at(-1)) + 4));
  for (const [index, { name, micros }] of lines.entries()) {
    const color = COLORS[index % COLORS.length];
    const points = micros.map((each, at) => `${x(counts[at]).toFixed(1)},${y(each).toFixed(1)}`);
    parts.push(
      `<polyline points="${points.join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>`,
      ...points.map(
        (point) => `<circle cx="${point.split(',')[0]}" cy="${point.split(',')[1]}" r="3" fill="${color}"/>`,
      ),
      text(WIDTH - RIGHT + 10, bases[index], name, `fill="${color}"`),
    );
  }
  const label = 'CPU time of a request in µs, by the number of routes, keys, models, tools or sessions';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}" font-family="sans-serif" font-size="12">
${parts.join('\n')}
</svg>
`;
}

/** 1, 2 or 5 times a power of ten, at least `size`. */
function niceStep(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return power * ([1, 2, 5].find((factor) => factor * power >= size) ?? 10);
}

/** Moves labels down until they are a line apart. */
function spread(bases) {
  const order = bases.map((_, index) => index).sort((a, b) => bases[a] - bases[b]);
  const moved = [...bases];
  for (let at = 1; at < order.length; at += 1)
    moved[order[at]] = Math.max(moved[order[at]], moved[order[at - 1]] + 14);
  return moved;
}
