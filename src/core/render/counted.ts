/** `1 session`, `2 sessions`: a number with what it counts. */
export function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}
