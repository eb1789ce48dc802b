// killed-world.ts: a folder, a config and the sandbox for daemons that are killed one after the other on the same spool.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { preparePower } from '../../crash/power-cut.ts'
import type { ReceivedPayload } from '../../../src/sandbox/received-payloads.ts'
import { newFolder } from '../folders.ts'
import { startSandbox } from '../pipeline-world.ts'
import type { Daemon } from './daemon.ts'
import { startKillable, type KillableOptions } from './killable.ts'

export type KilledWorld = {
  folder: string
  spoolPath: string
  start(kill?: KillableOptions['kill'], clockBehindMs?: number): Daemon
  /** Where fsync cannot be recorded on this machine, the kill before it was all. */
  cutPower(): Promise<void>
  /** In the order in which the service took it in. */
  received(): ReceivedPayload[]
}

const receivedMax = 100_000

/** `config`: without `spool` and `ops`. */
export async function openKilledWorld(config: (serviceUrl: string) => string): Promise<KilledWorld> {
  const folder = await newFolder()
  const { sandbox, url } = await startSandbox({ repeat: 'same', receivedMax })
  const setup = await preparePower(folder)
  const configPath = join(folder, 'gateway.yaml')
  await writeFile(
    configPath,
    `${config(url)}
spool: { path: ./spool, max_bytes: 1GiB, min_free_bytes: 1MiB }
ops: { listen: "127.0.0.1:0" }
`,
  )
  const spoolPath = join(folder, 'spool')
  const env = setup.kind === 'ready' ? setup.power.env : {}
  return {
    folder,
    spoolPath,
    start: (kill = null, clockBehindMs = 0) => startKillable({ configPath, env, kill, clockBehindMs }),
    async cutPower() {
      if (setup.kind === 'ready') await setup.power.cut(spoolPath)
    },
    received: () => sandbox.received({ limit: receivedMax }).toReversed(),
  }
}
