// judge.ts: what became of every message, told by those who are not the gateway: the devices by their acks, the
// service by its file, and the spool as it lies on the disk when everything is over.

import { newRandomId } from '../../src/domain/ids.ts'
import { spoolOptions } from '../../src/spool/config.ts'
import { openSpool } from '../../src/spool/spool.ts'
import { systemClock } from '../../src/std/clock.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { doomedDevice, keyOf, malformedText, wrongIn, type Message } from './message.ts'
import type { CrashWorld } from './world.ts'

export type Judgement = {
  published: number
  acked: number
  resent: number
  accepted: number
  deadLetters: number
  batches: number
  /** Submissions of a batchId that the service had taken in already. */
  repeats: number
  violations: string[]
}

type Effects = { accepted: number; dead: number }

/** Of each kind so many are told; the first shows what is wrong, the thousandth does not. */
const toldMax = 5

export async function judge(world: CrashWorld): Promise<Judgement> {
  const { fleet, service } = world
  const violations = createViolations(world.violations)
  const messages = new Map<string, Message>()
  const effects = new Map<string, Effects>()
  for (const { message } of fleet.messages()) {
    messages.set(nameOf(message), message)
    effects.set(nameOf(message), { accepted: 0, dead: 0 })
  }
  const accepted = await countAccepted()
  const deadLetters = await countDeadLetters()
  let acked = 0
  for (const { message, acked: wasAcked } of fleet.messages()) {
    if (wasAcked) acked += 1
    judgeMessage(message, wasAcked, effects.get(nameOf(message))!)
  }
  judgeService()
  if (fleet.counts.outOfOrder > 0)
    violations.add('ack order', `${fleet.counts.outOfOrder} acks came out of the order of their messages`)
  const { published, resent } = fleet.counts
  const { batches, repeats } = service.stats()
  return { published, acked, resent, accepted, deadLetters, batches, repeats, violations: violations.list() }

  async function countAccepted(): Promise<number> {
    let count = 0
    for await (const { payload } of service.accepted()) {
      count += 1
      const name = keyOf(payload.deviceIdentifier.id, payload.signalTimestamp)
      const message = messages.get(name)
      if (message === undefined) {
        violations.add('never sent', `the service accepted ${name}, which nobody sent`)
        continue
      }
      effects.get(name)!.accepted += 1
      const wrong = wrongIn(message, payload)
      if (wrong !== null) violations.add('content', `${name}: ${wrong}`)
    }
    return count
  }

  /** The spool is opened once more, by somebody who only reads. */
  async function countDeadLetters(): Promise<number> {
    const byText = new Map([...messages.values()].map((message) => [malformedText(message), message]))
    const spool = await openSpoolOf(world, (what) => violations.add('spool', what))
    let count = 0
    for (const lane of spool.lanes())
      if (lane.open !== 0) violations.add('spool', `lane ${lane.id} still holds ${lane.open}`)
    for await (const { deadLetter: letter } of spool.deadLetters({ limit: 10_000_000 })) {
      count += 1
      const text = letter.envelope === null ? '' : Buffer.from(letter.envelope.bytes, 'base64').toString()
      const message =
        letter.stage === 'mapping' ? byText.get(text) : messages.get(keyOfPayload(letter.payload))
      if (message === undefined)
        violations.add('dead letter', `unknown: ${JSON.stringify(letter).slice(0, 300)}`)
      else effects.get(nameOf(message))!.dead += 1
    }
    await spool.close()
    return count
  }

  function judgeMessage(message: Message, wasAcked: boolean, { accepted, dead }: Effects): void {
    const name = nameOf(message)
    if (!wasAcked) violations.add('never acked', `${name} was never acknowledged`)
    if (accepted + dead === 0) violations.add('acked lost', `${name} was acknowledged and is lost`)
    if (accepted + dead > 1)
      violations.add('twice', `${name} was accepted ${accepted} times and is ${dead} times a dead letter`)
    const meantDead = message.kind === 'malformed' || message.device === doomedDevice
    if (accepted > 0 && meantDead) violations.add('fate', `${name} should have become a dead letter`)
    if (dead > 0 && !meantDead) violations.add('fate', `${name} became a dead letter`)
  }

  function judgeService(): void {
    const stats = service.stats()
    const mustBeZero = {
      duplicatesAcrossBatches: stats.duplicatesAcrossBatches,
      duplicatesUnderOneBatch: stats.duplicatesUnderOneBatch,
      duplicatesAcrossSingles: stats.duplicatesAcrossSingles,
      repeatsWithOtherBytes: stats.repeatsWithOtherBytes,
      internalErrors: stats.internalErrors,
      // Were these not zero, the others would say nothing.
      payloadIdsNotKept: stats.payloadIdsNotKept,
      batchesForgotten: stats.batchesForgotten,
    }
    for (const [name, count] of Object.entries(mustBeZero))
      if (count !== 0) violations.add(name, `the service counts ${name} ${count}`)
    if (stats.distinctPayloadIds !== accepted)
      violations.add('ids', `${stats.distinctPayloadIds} payloadIds for ${accepted} payloads`)
    for (const refusals of [stats.refusedSignatures, stats.refusedRequests])
      if (Object.keys(refusals).length > 0) violations.add('refused', JSON.stringify(refusals))
  }
}

function nameOf({ device, ts }: Message): string {
  return keyOf(device, ts)
}

function keyOfPayload(payload: unknown): string {
  const { deviceIdentifier, signalTimestamp } = payload as {
    deviceIdentifier: { id: string }
    signalTimestamp: number
  }
  return keyOf(deviceIdentifier.id, signalTimestamp)
}

function openSpoolOf(world: CrashWorld, complain: (what: string) => void) {
  const config = {
    path: world.spoolPath,
    max_bytes: 1024 ** 3,
    min_free_bytes: 0,
    dedup: { window: 600_000, max_ids: 1_000_000 },
    dead_letters: { max_bytes: 1024 ** 3 },
    quarantine_max_bytes: 1024 ** 3,
    deferred_max_bytes: 1024 ** 3,
    state_max_bytes: 1024 ** 3,
  }
  return openSpool(
    {
      clock: systemClock,
      newId: newRandomId,
      random: Math.random,
      emit(event) {
        if (event.kind === 'chunk_damaged' || event.kind === 'conservation_broken')
          complain(JSON.stringify(event))
      },
      openStore: openLevelStore,
      disk: { ...realDisk, loadBallast: async () => undefined },
    },
    spoolOptions(config, { payloadsMax: 20, bytesMax: 1024 ** 2 }),
  )
}

function createViolations(noticed: readonly string[]) {
  const byKind = new Map<string, { count: number; told: string[] }>()
  function add(kind: string, what: string): void {
    const entry = byKind.get(kind) ?? { count: 0, told: [] }
    byKind.set(kind, entry)
    entry.count += 1
    if (entry.told.length < toldMax) entry.told.push(what)
  }
  for (const what of noticed) add('noticed', what)
  return {
    add,
    list: () => [...byKind].map(([kind, { count, told }]) => `${kind} (${count}): ${told.join('; ')}`),
  }
}
