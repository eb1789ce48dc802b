// spool-world.ts: payloads and options for tests of the spool.

import { hash } from 'node:crypto'
import type { DeadLetter } from '../../src/domain/dead-letter.ts'
import type { PayloadId, ProviderName } from '../../src/domain/ids.ts'
import type { ShelfName } from '../../src/domain/kept-store.ts'
import type { KeptMessage } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import type { Exchange, SpoolOptions } from '../../src/spool/spool.ts'
import type { Disk, FixedFile } from '../../src/storage/storage.ts'

export const provider = (name: string) => name as ProviderName

/** A payload named by `name`: the same name gives the same payload. `padding` makes it larger. */
export function payloadNamed(
  name: string,
  options: { provider?: string; padding?: number; deviceTime?: number | null } = {},
): MappedPayload {
  const payloadId = uuidOf(hash('sha256', `payload ${name}`, 'hex'))
  const windowKey = payloadId.replaceAll('-', '')
  const padding = 'x'.repeat(options.padding ?? 0)
  return {
    provider: provider(options.provider ?? 'default'),
    device: name,
    deviceTime: options.deviceTime === undefined ? 1 : options.deviceTime,
    payloadId,
    windowKey,
    duplicateRule: 'always',
    json: `{"payloadId":"${payloadId}","deviceIdentifier":{"id":"${name}"},"note":"${padding}"}`,
  }
}

function uuidOf(key: string): PayloadId {
  return `${key.slice(0, 8)}-${key.slice(8, 12)}-8${key.slice(13, 16)}-a${key.slice(17, 20)}-${key.slice(20, 32)}` as PayloadId
}

export function deadLetterNamed(name: string): { deadLetter: DeadLetter; windowKey: string } {
  return {
    windowKey: hash('sha256', `dead letter ${name}`, 'hex').slice(0, 32),
    deadLetter: {
      stage: 'mapping',
      at: 1,
      reason: 'NOT_JSON',
      detail: name,
      provider: null,
      device: null,
      envelope: null,
      payload: null,
      payloadId: null,
      batchId: null,
      requestId: null,
      failure: null,
    },
  }
}

/** A message for a shelf; its name is the topic. */
export function keptNamed(
  name: string,
  options: {
    shelf?: ShelfName
    device?: string | null
    client?: string
    identity?: string
    padding?: number
    reason?: string
  } = {},
): { message: KeptMessage; windowKey: string } {
  return {
    windowKey: hash('sha256', `kept ${name}`, 'hex').slice(0, 32),
    message: {
      shelf: options.shelf ?? 'quarantine:default',
      provider: provider('default'),
      device: options.device === undefined ? 'truck-1' : options.device,
      reason: options.reason ?? 'UNKNOWN_DEVICE',
      detail: 'The device is not listed.',
      envelope: {
        topic: name,
        bytes: 'x'.repeat(options.padding ?? 0),
        qos: 1,
        retain: false,
        dup: false,
        clientId: options.client ?? 'c',
        userName: null,
        certificateName: null,
        identity: options.identity ?? null,
        arrivedAt: 1,
        source: null,
      },
    },
  }
}

/** The changes of an exchange, all others being nothing. */
export function exchangeOf(changes: Partial<Exchange>): Exchange {
  return { take: [], payloads: [], deadLetters: [], stateChanges: [], ...changes }
}

/** Small limits, so that every bound is met with few payloads. */
export function smallOptions(path: string, changes: Partial<SpoolOptions> = {}): SpoolOptions {
  return {
    path,
    create: true,
    allowInMemory: true,
    onDamage: 'refuse',
    verifyBytesPerS: 0,
    bytesMax: 1024 ** 2,
    freeBytesMin: 0,
    deadLetterBytesMax: 1024 ** 2,
    quarantineBytesMax: 1024 ** 2,
    unlistedDeadLetterBytesMax: 1024 ** 2,
    partDeadLetterBytesMax: 1024 ** 2,
    clockBytesMax: 1024 ** 2,
    onFull: {
      quarantine: 'drop_oldest',
      clock: 'hold',
      dead_letters: 'hold',
      unlisted_dead_letters: 'drop_oldest',
    },
    stateBytesMax: 1024 ** 2,
    lateRecords: { recordsMax: 3, bytesMax: 64 * 1024 },
    backfillLanesMax: 8,
    receiptBytesMax: 64 * 1024,
    receiptMemoryBytesMax: 64 * 1024,
    reserveBytes: 0,
    ballastBytes: 0,
    window: { windowMs: 600_000, keysMax: 1000 },
    journal: { windowMs: 600_000, bytesMax: 100_000 },
    group: { chunkPayloadsMax: 4, chunkBytesMax: 1024 },
    groupBytesMax: 2048,
    busyMessages: 2000,
    busyBytes: 16 * 1024,
    uncommittedBytesMax: 64 * 1024,
    ackDelayMaxMs: 0,
    recentBytesMax: 4096,
    // Small ones are used again too, so that every test of the spool is a test of that.
    buffers: { stepBytes: 64, freeBytesMax: 16 * 1024 },
    diskCheckMs: 1000,
    forgetMs: 60_000,
    reopen: { firstMs: 1000, mostMs: 30_000, attemptsMax: 3 },
    ...changes,
  }
}

/** A disk with room for everything, for stores in memory. */
export const emptyDisk: Disk = {
  makeDirectory: async () => undefined,
  free: async () => ({ bytes: 1e12, files: Infinity }),
  usedBytes: async () => 0,
  loadBallast: async () => undefined,
  dropBallast: async () => undefined,
  openFixedFile: (_path, _name, bytes) => createMemoryFile().open(bytes),
  manifestName: () => null,
}

/** A file that keeps its content while it is opened again and again. */
export function createMemoryFile() {
  let content = Buffer.alloc(0)
  return {
    open(bytes: number): FixedFile {
      if (content.length < bytes) content = Buffer.concat([content, Buffer.alloc(bytes - content.length)])
      return {
        read: () => Buffer.from(content),
        write: (source, length, offset) => void source.copy(content, offset, 0, length),
        sync: () => undefined,
        close: () => undefined,
      }
    },
  }
}
