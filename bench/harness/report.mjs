// Tables in Markdown format.
import { cpus } from 'node:os';
import { residentMiB } from './processes.mjs';
import { median, ratio } from './rounds.mjs';

export function conditions({ connections, rounds, seconds }, what) {
  return [
    `${what}; c=${connections}, ${rounds} interleaved rounds of ${seconds} s, median (range)`,
    `Node ${process.versions.node}, ${cpus().length} cores: measured process on one, generator and upstream on the other`,
    '"rate" is relative to the reference in the same round; "capacity" is the CPU time per request of the reference divided by that of the case,',
    'and is valid even if the generator is the bottleneck ("core" far below 100 %) or the machine does other work.',
    '',
  ].join('\n');
}

/**
 * A row for each case, from the figures of `interleave`; the first one is the reference of all ratios. Its process must
 * still be running, because resident memory is read here, after the load.
 */
export function compare(cases, figures) {
  const reference = figures.get(cases[0].name);
  const header = ['', 'req/s', 'range', 'rate', 'CPU µs', 'capacity', 'core', 'p50 ms', 'p99 ms', 'RSS MiB'];
  return table(
    header,
    cases.map(({ name, request }) => {
      const runs = figures.get(name);
      return [
        name,
        thousands(median(runs.map((run) => run.rate))),
        `${thousands(Math.min(...runs.map((run) => run.rate)))}–${thousands(Math.max(...runs.map((run) => run.rate)))}`,
        `${ratio(runs, reference, (run) => run.rate).toFixed(2)} ×`,
        median(runs.map((run) => run.cpu)).toFixed(1),
        `${ratio(runs, reference, (run) => 1 / run.cpu).toFixed(2)} ×`,
        `${Math.round(median(runs.map((run) => run.busy)) * 100)} %`,
        (median(runs.map((run) => run.p50)) / 1000).toFixed(2),
        (median(runs.map((run) => run.p99)) / 1000).toFixed(2),
        residentMiB(request.pid).toFixed(0),
      ];
    }),
  );
}

export function table(header, rows) {
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => row[column].length)));
  const line = (row) =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]))).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [line(header), rule, ...rows.map(line)].join('\n');
}

const thousands = (perSecond) => `${(perSecond / 1000).toFixed(1)}k`;
