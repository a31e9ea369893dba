/** A number and its noun: `1 session`, `2 sessions`. */
export function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}
