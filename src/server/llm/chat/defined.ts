/** `T` whose members that may be undefined are optional instead. */
export type Defined<T> = {
  [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name];
} & {
  [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined>;
};

/** The members whose value is not undefined. */
export function defined<T extends object>(members: T): Defined<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the members of the object, without the undefined ones
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>;
}
