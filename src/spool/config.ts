// config.ts: the section `spool` of the configuration.

import { z } from 'zod'
import { duration, filePath, size } from '../std/schema.ts'
import type { OnFull } from '../domain/kept-store.ts'
import type { SpoolOptions } from './spool.ts'

const MiB = 1024 ** 2
const TiB = 1024 ** 4

/** Of the limit of a store, for each store beside it that has no setting of its own. */
const besideShare = 1 / 4
const deadLetterUse = ' A batch with a refused payload is held only with `hold`.'

/** What happens at the limit that the setting before it names. */
function onFull(standard: OnFull, more: string) {
  return z
    .enum(['hold', 'drop_oldest'])
    .default(standard)
    .describe(
      'What happens at that limit. `hold`: such a message is not acknowledged; it waits, and its connection ' +
        'with it, also for other devices on that connection. QoS 0 is dropped and counted. `drop_oldest`: the ' +
        'oldest messages of the device or client with the most are dropped, reported and counted; the limit is ' +
        'then at most an eighth of spool.max_bytes.' +
        more,
    )
}

export const spoolSchema = z.strictObject({
  path: filePath()
    .default('./spool')
    .describe(
      'Directory of the spool, relative to this file; see `create`. Only one gateway may ' +
        'use it. Use a local disk with a working fsync: on a network or memory file system, ' +
        'acknowledged data can be lost.',
    ),
  create: z
    .boolean()
    .default(true)
    .describe(
      'Whether the gateway makes a new spool where there is none. Set it to `false` in production, after ' +
        '`spool init` or the first start has made it: where the file system of the spool is not mounted, the ' +
        'gateway then waits for it (SPOOL_MISSING) and acknowledges nothing. The file spool.json in the directory says ' +
        'that it is a spool.',
    ),
  allow_in_memory: z
    .boolean()
    .default(false)
    .describe(
      'Allows a spool on a file system in memory (tmpfs, ramfs). A restart of the machine then deletes what ' +
        'was acknowledged. For trying out.',
    ),
  max_bytes: size({ minBytes: MiB, maxBytes: 64 * TiB })
    .prefault('20GiB')
    .describe(
      'Size limit of the spool. A part of it (a quarter, at most 64MiB) is reserved for settling. ' +
        'When the rest is used, acknowledgements are held, so senders (devices, brokers of bridges) keep their messages and send them again. ' +
        'QoS 0 messages are dropped and counted. Intake resumes automatically after batches are ' +
        'delivered.',
    ),
  min_free_bytes: size({ minBytes: 0, maxBytes: 64 * TiB })
    .prefault('1GiB')
    .describe(
      'Free space that the spool leaves on its file system. Below it, acknowledgements are held as ' +
        'at max_bytes, because a full disk can damage the database permanently. The same below 100 free inodes.',
    ),
  on_damage: z
    .enum(['refuse', 'set_aside'])
    .default('refuse')
    .describe(
      'What happens when files of the spool are damaged at the start. `refuse`: the gateway runs, reports ' +
        'the damage, accepts no connection, and opens the spool after `spool repair`. `set_aside`: the ' +
        'damaged spool is renamed, and a new one is begun, so that acknowledging goes on; `spool repair` ' +
        'merges the old one later. For machines that no person can reach soon.',
    ),
  verify_rate: size({ minBytes: 0, maxBytes: 1024 * MiB })
    .prefault('4MiB')
    .describe(
      'How many bytes per second of the tables on the disk are read and compared with their checksums ' +
        'while the daemon runs. New tables are read once after a minute, and all tables once a day, because ' +
        'disks lose what they once stored. `0B` turns it off; then a start after a crash has more to read.',
    ),
  dedup: z
    .strictObject({
      window: duration({ minMs: 0, maxMs: 86_400_000 })
        .prefault('10m')
        .describe(
          'How long a duplicate of a payload is recognized. A duplicate is acknowledged and not ' +
            'stored again. With `custody: delivered` also as long as an engine has no acknowledgement.',
        ),
      max_ids: z
        .int()
        .min(1)
        .max(16_000_000)
        .default(1_000_000)
        .describe(
          'Maximum number of payloads in the window. Each uses 24 bytes of memory. Above the limit, ' +
            'the oldest are removed.',
        ),
    })
    .prefault({})
    .describe('The dedup window. It survives restarts.'),
  dead_letters: z
    .strictObject({
      max_bytes: size({ minBytes: MiB, maxBytes: TiB })
        .prefault('1GiB')
        .describe(
          'Size limit of the dead letters. At nine tenths of it, a message that would become a dead ' +
            'letter is not acknowledged. It waits, with the later messages of its connection. A batch ' +
            'with a payload that would become a dead letter is held. Everything else continues. The ' +
            'last tenth is for devices and clients that use less than a hundredth of the limit. ' +
            'Besides, dead letters of unlisted devices and sources have a quarter of it, with what ' +
            '`quarantine_on_full` says; and those of records that were collected from several messages ' +
            '(`coalesce`, `merge`) have a quarter, where the oldest are dropped, since their messages are ' +
            'acknowledged already.',
        ),
      on_full: onFull('hold', deadLetterUse),
      retention: duration({ minMs: 3_600_000, maxMs: 3_650 * 86_400_000 })
        .optional()
        .describe(
          'Deletes dead letters that are older than this. Off unless set, because their data is ' +
            'lost: each deletion is logged at `error`, counted, and raises a condition. Nothing is ' +
            'deleted while the offset of the clock is unknown.',
        ),
    })
    .prefault({})
    .describe('Messages that cannot be mapped and payloads that the service refused, kept whole.'),
  quarantine_max_bytes: size({ minBytes: MiB, maxBytes: TiB })
    .prefault('1GiB')
    .describe(
      'Size limit of the messages in quarantine. They are kept whole until their device is listed ' +
        'or they are released. Besides, messages whose device clock is wrong have a quarter of it; ' +
        'where that is full, such a message waits, as with `hold`.',
    ),
  quarantine_on_full: onFull('drop_oldest', ''),
  state_max_bytes: size({ minBytes: MiB, maxBytes: 1024 * MiB })
    .prefault('64MiB')
    .describe(
      'Size limit of the mapping state that survives a restart: open records of `coalesce` and ' +
        '`merge`, aliases of Sparkplug, what is remembered of devices. At the limit, ' +
        'acknowledgements are held until open records are closed.',
    ),
})

export type SpoolConfig = z.output<typeof spoolSchema>

/** `batch` has the limits of a batch. Chunks get the same limits, so that sealing seldom has to cut. */
export function spoolOptions(
  config: SpoolConfig,
  batch: { payloadsMax: number; bytesMax: number },
  ackDelayMaxMs: number,
): SpoolOptions {
  // What unlisted devices can fill never fills the spool.
  const mostDropped = Math.max(MiB, config.max_bytes / 8)
  const limit = (bytesMax: number, onFull: OnFull) =>
    Math.max(MiB, onFull === 'hold' ? bytesMax : Math.min(bytesMax, mostDropped))
  const { dead_letters: dead } = config
  const ballastBytes = Math.min(16 * MiB, Math.floor(config.max_bytes / 16))
  return {
    path: config.path,
    create: config.create,
    allowInMemory: config.allow_in_memory,
    onDamage: config.on_damage,
    verifyBytesPerS: config.verify_rate,
    bytesMax: config.max_bytes,
    freeBytesMin: config.min_free_bytes,
    deadLetterBytesMax: limit(dead.max_bytes, dead.on_full),
    unlistedDeadLetterBytesMax: limit(dead.max_bytes * besideShare, config.quarantine_on_full),
    partDeadLetterBytesMax: limit(dead.max_bytes * besideShare, 'drop_oldest'),
    quarantineBytesMax: limit(config.quarantine_max_bytes, config.quarantine_on_full),
    clockBytesMax: limit(config.quarantine_max_bytes * besideShare, 'hold'),
    onFull: {
      quarantine: config.quarantine_on_full,
      clock: 'hold',
      dead_letters: dead.on_full,
      unlisted_dead_letters: config.quarantine_on_full,
    },
    stateBytesMax: config.state_max_bytes,
    // About 20,000 devices. A start writes as much: where the disk is full, the ballast makes room for it.
    lateRecords: { recordsMax: 65_536, bytesMax: Math.min(config.state_max_bytes / 8, ballastBytes / 4) },
    backfillLanesMax: 256,
    // A backlog of single payloads settles some thousand batches before the ledger takes their receipts.
    receiptBytesMax: Math.max(MiB, Math.min(64 * MiB, config.max_bytes / 16)),
    // Some five seconds at full load, which is how often the ledger takes them.
    receiptMemoryBytesMax: 8 * MiB,
    reserveBytes: Math.min(64 * MiB, config.max_bytes / 4),
    ballastBytes,
    window: { windowMs: config.dedup.window, keysMax: config.dedup.max_ids },
    journal: { windowMs: config.dedup.window, bytesMax: 4 * MiB },
    group: { chunkPayloadsMax: batch.payloadsMax, chunkBytesMax: batch.bytesMax / 2 },
    groupBytesMax: MiB,
    busyMessages: 2000,
    busyBytes: 2 * MiB,
    uncommittedBytesMax: 16 * MiB,
    ackDelayMaxMs,
    // A second at full load: delivery lags as much, and would read its batches back from the disk.
    recentBytesMax: 32 * MiB,
    buffers: { stepBytes: 16 * 1024, freeBytesMax: 8 * MiB },
    diskCheckMs: 1000,
    forgetMs: 60_000,
    reopen: { firstMs: 1000, mostMs: 30_000, attemptsMax: 10 },
  }
}
