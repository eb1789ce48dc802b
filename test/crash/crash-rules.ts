// crash-rules.ts: checks the result of every message with sources other than the gateway: the acks of the
// devices, the file of the service, and the spool on disk after the last daemon.

import { newRandomId } from '../../src/domain/ids.ts'
import { spoolOptions } from '../../src/spool/config.ts'
import { openSpool } from '../../src/spool/spool.ts'
import { systemClock } from '../../src/std/clock.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import {
  doomedDevice,
  keyOf,
  malformedText,
  wrongIn,
  wrongProperties,
  type Message,
} from './crash-message.ts'
import type { UntimedCounts } from './untimed-fleet.ts'
import type { CrashWorld } from './crash-world.ts'

export type CrashFindings = {
  published: number
  acked: number
  resent: number
  accepted: number
  deadLetters: number
  batches: number
  /** Submissions of a batchId that the service had already accepted. */
  repeats: number
  /** Of the devices without a device time, and how many of their messages came twice. */
  untimed: UntimedCounts
  violations: string[]
}

type Effects = { accepted: number; dead: number }

/** The most violations of each kind that are reported; further ones add no information. */
const reportedMax = 5

export async function checkRules(world: CrashWorld): Promise<CrashFindings> {
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
    checkMessage(message, wasAcked, effects.get(nameOf(message))!)
  }
  checkService()
  if (fleet.counts.outOfOrder > 0)
    violations.add('ack order', `${fleet.counts.outOfOrder} acks came out of the order of their messages`)
  for (const what of fleet.wrong) violations.add('answers', what)
  const { published, resent } = fleet.counts
  const { batches, repeats } = service.stats()
  const { violations: ofUntimed, counts: untimed } = world.untimed.check()
  for (const what of ofUntimed) violations.add(what.slice(0, what.indexOf(':')), what)
  return {
    published,
    acked,
    resent,
    accepted,
    deadLetters,
    batches,
    repeats,
    untimed,
    violations: violations.list(),
  }

  async function countAccepted(): Promise<number> {
    let count = 0
    for await (const { payload } of service.accepted()) {
      count += 1
      if (world.untimed.accepted(payload)) continue
      const name = keyOf(payload.deviceIdentifier.id, payload.signalTimestamp)
      const message = messages.get(name)
      if (message === undefined) {
        violations.add('never sent', `the service accepted ${name}, which no device sent`)
        continue
      }
      effects.get(name)!.accepted += 1
      const wrong = wrongIn(message, payload)
      if (wrong !== null) violations.add('content', `${name}: ${wrong}`)
    }
    return count
  }

  /** Opens the spool once more, only to read it. */
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
      else {
        effects.get(nameOf(message))!.dead += 1
        const wrong = letter.envelope === null ? null : wrongProperties(message, letter.envelope)
        if (wrong !== null) violations.add('properties', `${nameOf(message)}: ${wrong}`)
      }
    }
    await spool.close()
    return count
  }

  function checkMessage(message: Message, wasAcked: boolean, { accepted, dead }: Effects): void {
    const name = nameOf(message)
    if (!wasAcked) violations.add('never acked', `${name} was never acknowledged`)
    if (accepted + dead === 0) violations.add('acked lost', `${name} was acknowledged and is lost`)
    if (accepted + dead > 1)
      violations.add('twice', `${name} was accepted ${accepted} times and is ${dead} times a dead letter`)
    const meantDead = message.kind === 'malformed' || message.device === doomedDevice
    if (accepted > 0 && meantDead) violations.add('settlement', `${name} should have become a dead letter`)
    if (dead > 0 && !meantDead) violations.add('settlement', `${name} became a dead letter`)
  }

  function checkService(): void {
    const stats = service.stats()
    const mustBeZero = {
      duplicatesAcrossBatches: stats.duplicatesAcrossBatches,
      duplicatesUnderOneBatch: stats.duplicatesUnderOneBatch,
      duplicatesAcrossSingles: stats.duplicatesAcrossSingles,
      repeatsWithOtherBytes: stats.repeatsWithOtherBytes,
      internalErrors: stats.internalErrors,
      // If one of these is not zero, the other counts prove nothing.
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

function openSpoolOf(world: CrashWorld, report: (what: string) => void) {
  const config = {
    path: world.spoolPath,
    create: true,
    allow_in_memory: true,
    max_bytes: 1024 ** 3,
    min_free_bytes: 0,
    dedup: { window: 600_000, max_ids: 1_000_000 },
    on_damage: 'refuse' as const,
    verify_rate: 0,
    dead_letters: {
      max_bytes: 1024 ** 3,
      on_full: 'hold' as const,
      unlisted_max_bytes: 1024 ** 3,
      unlisted_on_full: 'drop_oldest' as const,
      parts_max_bytes: 1024 ** 3,
    },
    quarantine_max_bytes: 1024 ** 3,
    quarantine_on_full: 'drop_oldest' as const,
    clock_quarantine_max_bytes: 1024 ** 3,
    clock_quarantine_on_full: 'hold' as const,
    deferred_on_full: 'drop_oldest' as const,
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
          report(JSON.stringify(event))
      },
      openStore: openLevelStore,
      disk: { ...realDisk, loadBallast: async () => undefined },
    },
    spoolOptions(config, { payloadsMax: 20, bytesMax: 1024 ** 2 }),
  )
}

function createViolations(noticed: readonly string[]) {
  const byKind = new Map<string, { count: number; reported: string[] }>()
  function add(kind: string, what: string): void {
    const entry = byKind.get(kind) ?? { count: 0, reported: [] }
    byKind.set(kind, entry)
    entry.count += 1
    if (entry.reported.length < reportedMax) entry.reported.push(what)
  }
  for (const what of noticed) add('noticed', what)
  return {
    add,
    list: () =>
      [...byKind].map(([kind, { count, reported }]) => `${kind} (${count}): ${reported.join('; ')}`),
  }
}
