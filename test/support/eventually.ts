// eventually.ts: waits for what another process or thread brings about and tells nobody of. The test's own
// timeout bounds it.

const lookEveryMs = 20

/** Resolves when `holds`, asked again and again. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    await new Promise((resolve) => {
      setTimeout(resolve, lookEveryMs)
    })
  }
}
