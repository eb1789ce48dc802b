// A file of payloads and messages is imported while the daemon, or the command, is killed again and again, and
// the same command is given each time. The service gets each payload under one batchId.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { telemetryOf } from '../support/dead-letters-world.ts'
import { newFolder } from '../support/folders.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import {
  spawnCommand,
  startSpawnedDaemon,
  statusOf,
  writeDaemonConfig,
  type SpawnedDaemon,
} from '../support/spawned-daemon.ts'

const payloads = 12_000
const messages = 3000
const firstTs = 1_763_690_000_000

function payloadLine(n: number): string {
  const payload = telemetryOf(`truck-${n}`, { signalTimestamp: firstTs + n })
  return JSON.stringify({ kind: 'payload', provider: 'default', payload })
}

function messageLine(n: number): string {
  const bytes = Buffer.from(JSON.stringify({ t: firstTs + n, x: (n % 90) + 0.5, y: 13.4 })).toString('base64')
  const envelope = {
    topic: `a/van-${n}`,
    bytes,
    qos: 1,
    retain: false,
    dup: false,
    clientId: 'c',
    userName: null,
    certificateName: null,
    arrivedAt: firstTs + n,
    source: 'a',
  }
  return JSON.stringify({ kind: 'message', shelf: null, provider: null, device: null, envelope })
}

async function importFile(folder: string): Promise<string> {
  const file = join(folder, 'rescue.ndjson')
  const lines = [
    ...Array.from({ length: payloads / 2 }, (_, n) => payloadLine(n)),
    ...Array.from({ length: messages }, (_, n) => messageLine(n)),
    ...Array.from({ length: payloads / 2 }, (_, n) => payloadLine(payloads / 2 + n)),
  ]
  await writeFile(file, `${lines.join('\n')}\n`)
  return file
}

async function drained(daemon: SpawnedDaemon): Promise<void> {
  for (;;) {
    const { open } = await statusOf(daemon)
    if (open === 0) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe('an import that is interrupted and repeated', () => {
  test.each(['the daemon', 'the command'] as const)(
    'delivers each payload once when %s is killed',
    { timeout: 120_000 },
    async (killed) => {
      const { sandbox, url } = await startSandbox()
      const folder = await newFolder()
      const config = await writeDaemonConfig(folder, url)
      const file = await importFile(folder)
      let daemon = await startSpawnedDaemon(config)
      const requeue = () => spawnCommand(['dead-letters', 'requeue', '--file', file, '--url', daemon.control])
      let interrupted = 0
      const failed: string[] = []
      for (const share of [0.2, 0.5, 0.7]) {
        const { child, ended } = requeue()
        // Until so many are imported; some of them are delivered, so that both the spool and the ledger know some.
        const imported = async () => sandbox.stats().distinctPayloadIds + (await statusOf(daemon)).open
        while ((await imported()) < share * (payloads + messages) && child.exitCode === null);
        if (child.exitCode === null) interrupted += 1
        if (killed === 'the daemon') {
          await daemon.kill()
          failed.push(await ended)
          daemon = await startSpawnedDaemon(config)
        } else {
          child.kill('SIGKILL')
          await ended
          if (share > 0.4) await drained(daemon)
        }
      }
      expect(interrupted).toBeGreaterThan(0)
      expect(failed.filter((text) => !/^exit [01]/.test(text))).toEqual([])
      expect(await requeue().ended).toMatch(/^exit 0/)
      await drained(daemon)
      expect(await requeue().ended).toMatch(/exit 0\n0 payloads will be sent/)
      await drained(daemon)
      await daemon.kill()
      expect(sandbox.stats()).toMatchObject({
        distinctPayloadIds: payloads + messages,
        duplicatesAcrossBatches: 0,
        duplicatesUnderOneBatch: 0,
        repeatsWithOtherBytes: 0,
      })
    },
  )
})
