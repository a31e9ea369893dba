/** Waits until a condition holds; fails with the condition's text after `patience` ms. */
export async function until(condition: () => boolean | Promise<boolean>, patience = 10_000): Promise<void> {
  const deadline = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > deadline)
      throw new Error(`this did not come true within ${patience} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
