// asked-control.ts: control of a world of the ops port that notes each reload, and does nothing else.

import type { opsWorld } from './ops-world.ts'

/** Starts the port. Gives who asked for a reload, in order; every other change is an error of the test. */
export async function startAskedControl({
  ops,
}: Pick<ReturnType<typeof opsWorld>, 'ops'>): Promise<string[]> {
  await ops.start()
  const asked: string[] = []
  const fail = () => Promise.reject(new Error('unexpected call'))
  ops.attach({
    control: {
      reload: async (cause) => {
        asked.push(cause)
        return { kind: 'reloaded', sources: 1, tookMs: 1, restartNeeded: [], warnings: [] }
      },
      remap: fail,
      mute: () => 0,
      snapshotsFolder: '/var/lib/gateway/snapshots',
      forget: fail,
      check: fail,
      probe: fail,
    },
  })
  return asked
}
