import type { Turn } from '../model.ts';

/** One turn per line, as received from the backend. */
export function jsonLines(turns: readonly Turn[]): string[] {
  return turns.map((turn) => `${JSON.stringify(turn)}\n`);
}

/** For reading. Contents are in fences that they cannot close, so that they remain text. */
export function markdown(session: string, turns: readonly Turn[]): string[] {
  const title = `# Session ${oneLine(session)}\n`;
  return [
    title,
    ...turns.map(({ role, agentId, createdAt, content }, index) => {
      const fence = '`'.repeat(Math.max(2, ...(content.match(/`+/g) ?? []).map(({ length }) => length)) + 1);
      return `\n## ${index + 1}. ${role}, ${oneLine(agentId)}, ${createdAt}\n\n${fence}text\n${content}\n${fence}\n`;
    }),
  ];
}

const oneLine = (text: string): string =>
  text.replace(/\s+/g, ' ').replace(/[\\`*_[\]<>#|]/g, String.raw`\$&`);

/** Offers a file as download. */
export function download(name: string, type: string, parts: readonly string[]): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([...parts], { type }));
  link.download = name.replace(/[^\w.-]+/g, '_').slice(0, 100);
  link.click();
  // The browser has started reading it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
