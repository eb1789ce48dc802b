// dedup.ts: what the dedup window costs, as a share of the work that a message is for the main thread.

import { hash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { newRandomId } from '../../../src/domain/ids.ts'
import { spoolOptions, spoolSchema } from '../../../src/spool/config.ts'
import { openSpool } from '../../../src/spool/spool.ts'
import { createWindow } from '../../../src/spool/chunk-log/dedup-window.ts'
import { openLevelStore, realDisk } from '../../../src/storage/storage.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { figureOf, makeFolder, median, rounded } from '../bench.ts'
import type { BenchOptions, Figure } from '../bench.ts'
import { openTrucks, timeOf, truckMessages } from '../trucks.ts'

const rounds = 9
const messagesARound = 20_000
/** Messages that the intake has in hand at a time. */
const inHand = 1000
const batchLimits = { payloadsMax: 500, bytesMax: 1024 ** 2 }
const knownKeys = 1_000_000

/**
 * The window by itself, with a million known keys of which each new one forgets the oldest, against map, append and
 * endMessage into a spool on a disk whose window holds as many. The writing to the disk is not counted in the whole,
 * so that the share is rather too large.
 */
export async function measureDedup({ dir, scale }: BenchOptions): Promise<Figure[]> {
  const known = Math.max(10_000, Math.round(knownKeys * Math.min(1, scale)))
  await using folder = await makeFolder(dir)
  const { wholeMs, wallMs, count } = await measureIngest(join(folder.path, 'spool'), known)
  const windowMs = measureWindow(known, count)
  const value = windowMs / wholeMs
  return [
    figureOf({
      figure: 'dedup',
      value,
      digits: 4,
      unit: 'share of mapping and appending a message',
      atMost: 0.1,
      detail: {
        knownKeys: known,
        windowUsEach: rounded((windowMs / count) * 1000),
        wholeUsEach: rounded((wholeMs / count) * 1000),
        untilDurableUsEach: rounded((wallMs / count) * 1000),
      },
    }),
  ]
}

/** Medians of milliseconds for `count` messages. */
async function measureIngest(path: string, known: number) {
  const config = spoolSchema.parse({ path, min_free_bytes: '64MiB', dedup: { max_ids: known } })
  const spool = await openSpool(
    {
      clock: systemClock,
      newId: newRandomId,
      random: Math.random,
      emit: () => undefined,
      openStore: openLevelStore,
      disk: realDisk,
    },
    spoolOptions(config, batchLimits),
  )
  const durable = () => new Promise((done) => spool.endMessage(done))
  const mapper = await openTrucks()
  const wholeMs: number[] = []
  const wallMs: number[] = []
  const count = messagesARound
  try {
    for (let key = 1; key <= known; key += 1) {
      spool.addWindowKey(randomBytes(16).toString('hex'))
      if (key % 5000 === 0) await durable()
      else spool.endMessage(null)
    }
    await durable()
    for (let round = -1; round < rounds; round += 1) {
      const messages = truckMessages(count, (round + 1) * count)
      const startedMs = performance.now()
      let busyMs = 0
      for (let at = 0; at < count; at += inHand) {
        busyMs += timeOf(() => {
          for (const message of messages.slice(at, at + inHand)) {
            const result = mapper.map(message)
            if (result.kind !== 'payloads') throw new Error(`not mapped but ${result.kind}`)
            for (const payload of result.payloads)
              if (spool.append(payload) === 'duplicate') throw new Error('a copy of what never was')
            spool.endMessage(null)
          }
        })
        await durable()
      }
      if (round < 0) continue
      wholeMs.push(busyMs)
      wallMs.push(performance.now() - startedMs)
    }
  } finally {
    await spool.close()
  }
  return { wholeMs: median(wholeMs), wallMs: median(wallMs), count }
}

function measureWindow(known: number, count: number): number {
  const window = createWindow({ windowMs: 600_000, keysMax: known })
  const keys = Array.from({ length: count }, () => '')
  let n = 0
  const add = (key: string) => {
    window.load(key)
    if (window.has()) throw new Error('a random key came twice')
    window.add()
  }
  const endGroup = () => {
    window.endGroup((n += 1), 1000, 0)
    window.expire(0, 1000)
  }
  for (let key = 1; key <= known; key += 1) {
    add(randomBytes(16).toString('hex'))
    if (key % 1000 === 0) endGroup()
  }
  const times = Array.from({ length: rounds }, (_, round) => {
    const fresh = keys.map((_key, index) => hash('sha256', `${round} ${index}`, 'hex').slice(0, 32))
    return timeOf(() => {
      for (const [index, key] of fresh.entries()) {
        add(key)
        if (index % 1000 === 999) endGroup()
      }
    })
  })
  return median(times)
}
