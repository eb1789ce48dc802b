// asked-control.ts: control of a world of the ops port that notes each reload, and does nothing else.

import { daemonControl, type opsWorld } from './ops-world.ts'

/** Starts the port. Gives who asked for a reload, in order; every other change is an error of the test. */
export async function startAskedControl({
  ops,
}: Pick<ReturnType<typeof opsWorld>, 'ops'>): Promise<string[]> {
  await ops.start()
  const asked: string[] = []
  const control = daemonControl({
    async reload(cause) {
      asked.push(cause)
      return { kind: 'reloaded', sources: 1, tookMs: 1, restartNeeded: [], warnings: [] }
    },
  })
  ops.attach({ control })
  return asked
}
