/** What the CEL page begins with next time: a step of a trace hands its variables over. */
interface Handed {
  readonly expression: string;
  readonly state: Readonly<Record<string, unknown>>;
}

let handed: Handed | undefined;

/** Gives variables to the CEL page; go to `/cel` afterwards. They stay in the memory of the page. */
export function handToCel(expression: string, state: Readonly<Record<string, unknown>>): void {
  handed = { expression, state };
}

export const handedToCel = (): Handed | undefined => handed;
