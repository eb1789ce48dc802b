// Dead letters are requeued while the daemon is killed again and again; the service gets each payload once.

import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { openSpool, type SpoolOptions } from '../../src/spool/spool.ts'
import { newRandomId } from '../../src/domain/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { newFolder } from '../support/folders.ts'
import { refusedPayload } from '../support/dead-letters-world.ts'
import { collect } from '../support/open-spool.ts'
import { startSandbox } from '../support/pipeline-world.ts'
import { startSpawnedDaemon, statusOf, writeDaemonConfig } from '../support/spawned-daemon.ts'
import { exchangeOf, smallOptions } from '../support/spool-world.ts'
import { send } from '../support/ops-world.ts'

const letters = 20_000
const rounds = 6

const wide: Partial<SpoolOptions> = {
  bytesMax: 1024 ** 3,
  deadLetterBytesMax: 1024 ** 3,
  recentBytesMax: 1024 ** 2,
}

function openBare(path: string) {
  const deps = { clock: systemClock, newId: newRandomId, random: Math.random, emit: () => undefined }
  return openSpool({ ...deps, openStore: openLevelStore, disk: realDisk }, smallOptions(path, wide))
}

describe('kill -9 during a requeue of many', () => {
  test(
    'each payload is in the service once, or still a dead letter; nothing is lost',
    { timeout: 120_000 },
    async () => {
      const { sandbox, url } = await startSandbox()
      const folder = await newFolder()
      const path = join(folder, 'spool')
      const config = await writeDaemonConfig(folder, url)
      const before = await openBare(path)
      await before.exchange(
        exchangeOf({ deadLetters: Array.from({ length: letters }, (_, n) => refusedPayload(`truck-${n}`)) }),
      )
      await before.close()

      let interrupted = 0
      for (let round = 0; round < rounds; round += 1) {
        const daemon = await startSpawnedDaemon(config)
        const atStart = (await statusOf(daemon)).left
        const asked = send(daemon.control, '/control/dead-letters/requeue?all=1', { method: 'POST' }).catch(
          () => null,
        )
        let left = atStart
        while (left === atStart) left = (await statusOf(daemon)).left
        // Each round a few answers later: within a group, and between two.
        for (let more = 0; more < round; more += 1) left = (await statusOf(daemon)).left
        await daemon.kill()
        await asked
        if (left > 0) interrupted += 1
      }
      expect(interrupted).toBeGreaterThan(1)

      const spool = await openBare(path)
      const left = await collect(spool.deadLetters({ limit: Infinity }))
      const open = spool.lanes().reduce((sum, lane) => sum + lane.open, 0)
      expect((await spool.check(new AbortController().signal)).problems).toEqual([])
      await spool.close()
      // The service may have accepted open payloads already: their batch was in flight.
      expect(left.length + open).toBeLessThanOrEqual(letters)
      expect(left.length + open + sandbox.stats().distinctPayloadIds).toBeGreaterThanOrEqual(letters)

      const last = await startSpawnedDaemon(config)
      const answer = await send(last.control, '/control/dead-letters/requeue?all=1', { method: 'POST' })
      expect(await answer.json()).toMatchObject({ payloads: left.length })
      for (;;) {
        const { open, left } = await statusOf(last)
        if (open === 0 && left === 0) break
      }
      await last.kill()
      expect(sandbox.stats()).toMatchObject({
        distinctPayloadIds: letters,
        duplicatesAcrossBatches: 0,
        duplicatesUnderOneBatch: 0,
        repeatsWithOtherBytes: 0,
      })
    },
  )
})
