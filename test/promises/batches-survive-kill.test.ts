// An operator changes many held batches while the daemon is killed. Each batch is changed whole or not at all.

import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newRandomId, type LaneId } from '../../src/domain/ids.ts'
import { openSpool, type Spool } from '../../src/spool/spool.ts'
import { systemClock } from '../../src/std/clock.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { newFolder } from '../support/folders.ts'
import { collect } from '../support/open-spool.ts'
import { spawnCommand, startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'
import { exchangeOf, payloadNamed, smallOptions } from '../support/spool-world.ts'

const batches = 1500
const perBatch = 4

function openBare(path: string): Promise<Spool> {
  const deps = { clock: systemClock, newId: newRandomId, random: Math.random, emit: () => undefined }
  const wide = { bytesMax: 1024 ** 3, deadLetterBytesMax: 1024 ** 3, recentBytesMax: 1024 ** 2 }
  return openSpool({ ...deps, openStore: openLevelStore, disk: realDisk }, smallOptions(path, wide))
}

async function fillWithHeld(path: string): Promise<void> {
  const spool = await openBare(path)
  const payloads = Array.from({ length: batches * perBatch }, (_, n) => payloadNamed(`truck-${n}`))
  await spool.exchange(exchangeOf({ payloads }))
  const held = { reason: 'repeated', since: 1_763_690_000_000, requestId: null, why: 'HTTP 409' } as const
  for (;;) {
    const batch = await spool.seal(1 as LaneId, { payloadsMax: perBatch, bodyBytesMax: 1e6 })
    if (batch === null) break
    await spool.setHeld(batch, held)
  }
  await spool.close()
}

async function contentOf(path: string) {
  const spool = await openBare(path)
  const letters = await collect(spool.deadLetters({ limit: Infinity }))
  const sealed = spool.batches()
  const { problems } = await spool.check(new AbortController().signal)
  await spool.close()
  return { letters: letters.map(({ deadLetter }) => deadLetter.payloadId), sealed, problems }
}

describe('kill -9 while an operator drops many held batches', () => {
  test(
    'leaves each batch held or dropped, and the command can be repeated',
    { timeout: 90_000 },
    async () => {
      const folder = await newFolder()
      const path = join(folder, 'spool')
      // Nothing listens there, so the daemon settles nothing.
      const config = await writeDaemonConfig(folder, 'http://127.0.0.1:9')
      await fillWithHeld(path)
      const dropAll = (url: string) => spawnCommand(['batches', 'drop', '--all', '--yes', '--url', url])
      let interrupted = 0
      for (const share of [0.1, 0.5]) {
        const daemon = await startSpawnedDaemon(config)
        const { ended } = dropAll(daemon.control)
        for (;;) {
          const { spool } = (await (await fetch(`${daemon.url}/status`)).json()) as {
            spool: { deadLetters: number }
          }
          if (spool.deadLetters >= share * batches * perBatch) break
        }
        await daemon.kill()
        expect(await ended).toMatch(/^exit 1/)
        const { letters, sealed, problems } = await contentOf(path)
        expect(problems).toEqual([])
        expect(
          sealed.every(({ held, payloads }) => held?.reason === 'repeated' && payloads === perBatch),
        ).toBe(true)
        expect(letters.length + sealed.length * perBatch).toBe(batches * perBatch)
        if (sealed.length > 0) interrupted += 1
      }
      expect(interrupted).toBe(2)
      const daemon = await startSpawnedDaemon(config)
      // The batch of the probe is skipped while its submission runs.
      let ended = await dropAll(daemon.control).ended
      while (ended.includes('BATCH_BUSY')) ended = await dropAll(daemon.control).ended
      expect(ended).toMatch(/^exit 0/)
      await daemon.kill()
      const { letters, sealed } = await contentOf(path)
      expect([sealed.length, new Set(letters).size]).toEqual([0, batches * perBatch])
    },
  )
})
