// dead-letters-world.ts: dead-letter operations over a spool on real LevelDB, with dead letters as delivery and mapping
// make them.

import type { DeadLetter } from '../../src/domain/dead-letter.ts'
import type { ProviderName } from '../../src/domain/ids.ts'
import {
  createDeadLetterOperations,
  type DeadLetterOperations,
  type DeliveredIds,
  type Remap,
} from '../../src/dead-letters/dead-letters.ts'
import { collect, openSpoolWorld, sealAll, type SpoolWorld, type WorldOptions } from './open-spool.ts'
import { bodyOf } from './batch-body.ts'
import { exchangeOf, deadLetterNamed, payloadNamed } from './spool-world.ts'

export type DeadLettersWorld = SpoolWorld & {
  operations: DeadLetterOperations
  /** Requests to the mapping: the details of their dead letters or the topics of their messages. */
  remapped: string[][]
  add(...deadLetters: DeadLetter[]): Promise<void>
  /** From now on the spool reports that it is full. */
  becomeFull(): void
  /** Devices of the dead letters, oldest first. */
  left(): Promise<string[]>
  idOf(device: string): Promise<string>
  /** What is pending, as it would be sent. */
  sent(): Promise<Record<string, unknown>[]>
  payloads(): number
  /** How often all records of the spool were read. */
  walks(): number
}

export async function openDeadLettersWorld(
  options: WorldOptions & { providers?: string[]; delivered?: DeliveredIds } = {},
): Promise<DeadLettersWorld> {
  const world = await openSpoolWorld({
    ...options,
    changes: { bytesMax: 64 * 1024 ** 2, deadLetterBytesMax: 64 * 1024 ** 2, ...options.changes },
  })
  const { spool, clock, events } = world
  const remapped: string[][] = []
  const remap: Remap = async ({ deadLetters, messages, dryRun }) => {
    const names: string[] = []
    for await (const { deadLetter } of deadLetters ?? over([])) names.push(deadLetter.detail)
    for await (const { envelope } of messages ?? over([])) names.push(envelope.topic)
    if (!dryRun) remapped.push(names)
    return {
      deadLetters: names.length,
      remapped: names.length,
      payloads: 0,
      duplicates: 0,
      ignored: {},
      kept: 0,
      stillRefused: {},
    }
  }
  const { providers = ['default'] } = options
  let full = false
  let walks = 0
  const eachStored: typeof spool.eachStored = (visitor, signal) => {
    walks += 1
    return spool.eachStored(visitor, signal)
  }
  const holdReason: typeof spool.holdReason = () => (full ? 'spool_full' : spool.holdReason())
  const operations = createDeadLetterOperations({
    spool: { ...spool, holdReason, eachStored },
    clock,
    emit: (event) => void events.push(event),
    remap,
    providers: () => providers as ProviderName[],
    delivered: options.delivered ?? (async () => ({ kind: 'asked', since: null })),
  })
  const entries = () => collect(spool.deadLetters({ limit: Infinity }))
  return {
    ...world,
    operations,
    remapped,
    becomeFull() {
      full = true
    },
    async add(...deadLetters) {
      for (const one of deadLetters) await spool.exchange(exchangeOf({ deadLetters: [one] }))
    },
    left: async () => (await entries()).map(({ deadLetter }) => deadLetter.device ?? ''),
    async idOf(device) {
      const entry = (await entries()).find(({ deadLetter }) => deadLetter.device === device)
      if (entry === undefined) throw new Error(`there is no dead letter of ${device}`)
      return entry.id
    },
    async sent() {
      const payloads: Record<string, unknown>[] = []
      for (const batch of await sealAll(spool)) {
        const loaded = await spool.load(batch)
        if (loaded.kind !== 'content') throw new Error('the batch is damaged')
        const { data } = JSON.parse(bodyOf(loaded.content).toString()) as { data: Record<string, unknown>[] }
        payloads.push(...data)
      }
      return payloads
    },
    walks: () => walks,
    payloads: () => spool.lanes().reduce((sum, { open }) => sum + open, 0),
  }
}

async function* over<Entry>(entries: readonly Entry[]): AsyncGenerator<Entry> {
  yield* entries
}

/** A valid payload of a device. */
export function telemetryOf(device: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    payloadId: payloadNamed(device).payloadId,
    signalTimestamp: 1_763_690_000_000,
    deviceIdentifier: { id: device },
    gps: { latitude: 52.5, longitude: 13.4 },
    ...changes,
  }
}

/** A payload that the service refused finally. */
export function refusedPayload(device: string, changes: Partial<DeadLetter> = {}): DeadLetter {
  const { payloadId } = payloadNamed(device)
  const failure = {
    payloadId,
    errorType: 'Validation',
    errorMessage: 'The payload is not valid.',
    validationErrorDetails: [{ field: 'gps.latitude', message: 'must not be empty' }],
  }
  return {
    ...deadLetterNamed(device).deadLetter,
    stage: 'delivery',
    at: 1000,
    reason: 'Validation',
    detail: 'The payload is not valid.',
    provider: 'default' as ProviderName,
    device,
    payload: telemetryOf(device),
    payloadId,
    batchId: null,
    requestId: 'request-1',
    failure,
    ...changes,
  }
}

/** A message that the mapping refused; `name` is its topic and detail. */
export function refusedMessage(name: string, changes: Partial<DeadLetter> = {}): DeadLetter {
  return {
    ...deadLetterNamed(name).deadLetter,
    at: 1000,
    envelope: {
      topic: name,
      bytes: Buffer.from(name).toString('base64'),
      qos: 1,
      retain: false,
      dup: false,
      clientId: 'c',
      userName: null,
      certificateName: null,
      arrivedAt: 1,
      source: 'trucks',
    },
    ...changes,
  }
}
