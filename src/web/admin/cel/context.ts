/** Initial content of the CEL page: a trace step passes its variables. */
interface InitialContent {
  readonly expression: string;
  readonly state: Readonly<Record<string, unknown>>;
}

let handed: InitialContent | undefined;

/** Passes variables to the CEL page; navigate to `/cel` afterwards. They are kept in the memory of the page only. */
export function passToCel(expression: string, state: Readonly<Record<string, unknown>>): void {
  handed = { expression, state };
}

export const takeInitialContent = (): InitialContent | undefined => handed;
