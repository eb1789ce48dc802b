// Random faults by seed against all of delivery: every kind of answer, crashes and lost stores, then a
// service that works again. At the end every payload was delivered or is a dead letter with a reason, each
// payload was accepted under one batchId unless the service answered for it, and no batchId was sent with
// other bytes.

import { expect, test } from 'vitest'
import { createDeliveryWorld } from '../support/delivery-world.ts'
import type { DeliveryWorld } from '../support/delivery-world.ts'
import { createRandom } from '../support/random.ts'
import type { Random } from '../support/random.ts'
import { acceptAll, breakdown } from '../support/scripted-service.ts'
import type { Received, Reply } from '../support/scripted-service.ts'

const seeds = Array.from({ length: 20 }, (_, index) => index + 1)

type Books = { bytes: Map<string, string>; accepted: Map<string, Set<string>>; failed: Map<string, number> }

function misbehave(random: Random, one: Received): Reply {
  const { payloadIds } = one
  if (one.single) return misbehaveAlone(random, one)
  const some = payloadIds.filter(() => random.chance(0.5))
  const others = payloadIds.filter((id) => !some.includes(id))
  const errorType = random.pick(['Validation', 'Internal', 'Quota'])
  return random.pick<() => Reply>([
    () => acceptAll(one),
    () => acceptAll(one),
    () => breakdown({ accepted: some, failed: others.map((payloadId) => ({ payloadId, errorType })) }),
    () => breakdown({ accepted: payloadIds, failed: some.map((payloadId) => ({ payloadId, errorType })) }),
    () => breakdown({ accepted: some, failed: [] }),
    () => breakdown({ accepted: [], failed: payloadIds.map((payloadId) => ({ payloadId, errorType })) }),
    () => breakdown({ accepted: ['foreign', ...payloadIds], failed: [{ payloadId: 'other' }] }),
    () => ({ status: random.pick([500, 502, 503, 429, 408]), headers: { 'retry-after': '3' } }),
    () => ({ status: random.pick([400, 413, 409, 401, 403, 404, 302]) }),
    () => ({ status: 200, body: '<html>' }),
    () => ({ status: 200, body: '{', truncated: true }),
    () => 'reset',
  ])()
}

function misbehaveAlone(random: Random, one: Received): Reply {
  return random.pick<() => Reply>([
    () => acceptAll(one),
    () => ({ status: random.pick([400, 413, 500, 503, 429, 403, 404]) }),
    () => ({ status: 202, body: '<html>' }),
    () => 'reset',
  ])()
}

function keepBooks(books: Books, one: Received, reply: Reply): void {
  if (one.single) {
    if (typeof reply === 'object' && 'status' in reply && typeof reply.body === 'object')
      for (const id of one.payloadIds) noteAccepted(books, id, 'by the single operation')
    return
  }
  const hex = one.body.toString('hex')
  expect(books.bytes.get(one.batchId) ?? hex).toBe(hex)
  books.bytes.set(one.batchId, hex)
  if (
    typeof reply !== 'object' ||
    !('status' in reply) ||
    typeof reply.body !== 'object' ||
    reply.body === null
  )
    return
  const { accepted, failed } = reply.body as { accepted: string[]; failed: { payloadId: string }[] }
  const refused = new Set(failed.map(({ payloadId }) => payloadId))
  for (const id of refused) books.failed.set(id, (books.failed.get(id) ?? 0) + 1)
  for (const id of accepted) {
    if (refused.has(id)) continue
    noteAccepted(books, id, one.batchId)
  }
}

function noteAccepted({ accepted }: Books, id: string, how: string): void {
  accepted.set(id, (accepted.get(id) ?? new Set()).add(how))
}

async function live(world: DeliveryWorld, random: Random): Promise<string[]> {
  const published: string[] = []
  for (let step = 0; step < 25; step += 1) {
    const names = Array.from({ length: 1 + random.below(5) }, (_, index) => `${step}-${index}`)
    // While the store is being reopened nothing is accepted.
    if (world.spool.holdReason() === null) published.push(...(await ackedOf(world, names)))
    await world.pass(random.below(20_000))
    if (random.chance(0.05)) await world.crash()
    if (random.chance(0.05)) world.disk.failNextWrite({ reachesDisk: random.chance(0.5) })
  }
  return published
}

/** A message whose write failed was not acked: its device keeps it. */
async function ackedOf(world: DeliveryWorld, names: readonly string[]): Promise<readonly string[]> {
  try {
    return await world.publish(...names)
  } catch (error) {
    expect(error).toMatchObject({ code: 'SPOOL_WRITE_FAILED' })
    return []
  }
}

test.each(seeds)(
  'nothing is lost and nothing is sent under two batchIds without a reason (seed %i)',
  async (seed) => {
    const random = createRandom(seed)
    const books: Books = { bytes: new Map(), accepted: new Map(), failed: new Map() }
    const world = await createDeliveryWorld({ seed })
    try {
      const record = (reply: Reply, one: Received): Reply => {
        keepBooks(books, one, reply)
        return reply
      }
      world.service.answer((one) => record(misbehave(random, one), one))
      const published = await live(world, random)
      world.disk.heal()
      world.service.answer((one) => record(acceptAll(one), one))
      await world.pass(3 * 3_600_000)

      const dead = new Set<string>()
      for await (const { deadLetter: letter } of world.spool.deadLetters({ limit: 1000 })) {
        expect(letter.reason).not.toBe('')
        dead.add(letter.payloadId ?? '')
      }
      expect(world.spool.batches()).toEqual([])
      for (const id of published) expect(books.accepted.has(id) || dead.has(id), `${id} was lost`).toBe(true)
      for (const [id, batches] of books.accepted) {
        // Under a second batchId only after the service answered `failed`, or nothing, for it.
        const asked = id === 'foreign' || books.failed.has(id) || hadGaps(world, id)
        expect(batches.size === 1 || asked, `${id} was accepted twice`).toBe(true)
      }
    } finally {
      await world.end()
    }
  },
)

/**
 * It was retried as Unconfirmed: two answers in a row left it out, which the service must have done itself.
 */
function hadGaps(world: DeliveryWorld, id: string): boolean {
  return world.events.some(
    (event) =>
      event.kind === 'submission_ended' &&
      event.outcome.kind === 'answered' &&
      !event.outcome.accepted.includes(id) &&
      world.service.received.some(
        ({ batchId, payloadIds }) => batchId === event.batchId && payloadIds.includes(id),
      ),
  )
}
