/** What ends the answer. An empty text, which forms and old clients send for none, ends nothing, and providers refuse it. */
export function stopTexts(texts: readonly string[] = []): readonly string[] | undefined {
  const stops = texts.filter((text) => text !== '');
  return stops.length === 0 ? undefined : stops;
}
