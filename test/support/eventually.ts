// eventually.ts: waits for a change in another process or thread that gives no event. The timeout of the test bounds it.

const lookEveryMs = 20

/** Resolves when `holds` returns true; it is called every few milliseconds. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await new Promise((resolve) => {
      setTimeout(resolve, lookEveryMs)
    })
  }
}
