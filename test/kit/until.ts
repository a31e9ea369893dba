/** Waits until a condition, asked every `interval` ms, holds; fails with its text after `patience` ms. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  patience = 10_000,
  interval = 5,
): Promise<void> {
  const deadline = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error(`this did not come true within ${patience} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
}
