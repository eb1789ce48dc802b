// Each row: an answer of the service, its outcome, and what becomes of each of the three payloads of the
// batch.

import { afterEach, describe, expect, test } from 'vitest'
import { createDeliveryWorld } from '../support/delivery-world.ts'
import type { DeliveryWorld } from '../support/delivery-world.ts'
import { hostileBodies } from '../support/hostile-bodies.ts'
import type { HostileAnswer } from '../support/hostile-answer.ts'
import { hostileSingles, hostileWires } from '../support/hostile-wires.ts'
import { acceptAll } from '../support/scripted-service.ts'
import type { Received } from '../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000

/** How `id` was sent after its first submission. */
function whatBecameOf(id: string): string {
  const sent = world.service.received.filter(({ payloadIds }) => payloadIds.includes(id))
  const steps = sent.slice(1).map((one, index) => stepOf(sent[index], one))
  return steps.length === 0 ? 'delivered' : steps.join(', ')
}

function stepOf(before: Received | undefined, now: Received): string {
  if (before?.batchId === now.batchId) return before.body.equals(now.body) ? 'again' : 'again, changed'
  const cut = world.ofKind('batch_split').some(({ batchId }) => batchId === before?.batchId)
  return cut ? 'cut' : 'retried'
}

function open(): number {
  return world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
}

/** Until all is delivered, and for a minute more in which nothing may be sent again. */
async function drained(): Promise<void> {
  for (let passed = 0; passed < 30 && open() > 0; passed += 1) await world.pass(minuteMs)
  await world.pass(minuteMs)
}

/** Gives the answer to the first request, or the first few, and then accepts everything. */
async function ask({ reply, times = 1, provider = {} }: HostileAnswer, mode: 'batch' | 'single') {
  world = await createDeliveryWorld({
    script: (one, index) => (index < times ? reply(one) : acceptAll(one)),
    provider: { ...provider, mode, maxInFlight: 1 },
    sockets: true,
  })
  return world.publish(...(mode === 'batch' ? ['a', 'b', 'c'] : ['a']))
}

describe('a batch', () => {
  test.each([...hostileBodies, ...hostileWires])('$name', async (row) => {
    const ids = await ask(row, 'batch')
    await world.pass(0)

    const [first] = world.ofKind('submission_ended')
    expect(first?.outcome).toMatchObject(row.outcome)
    const deviations = world.ofKind('answer_inconsistent').flatMap((event) => event.deviations)
    expect(deviations.join('\n')).toMatch(row.deviation ?? '')
    expect(world.spool.totals().delivered + open()).toBe(ids.length)
    expect(world.spool.totals().dead).toBe(0)

    await drained()
    expect(ids.map(whatBecameOf)).toEqual(
      typeof row.becomes === 'string' ? ids.map(() => row.becomes) : row.becomes,
    )
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: ids.length, dead: 0 })
    expect(Object.prototype).not.toHaveProperty('failed')
  })
})

describe('a single payload', () => {
  test.each(hostileSingles)('$name', async (row) => {
    const ids = await ask(row, 'single')
    await world.pass(1000)

    expect(world.service.received.every(({ single }) => single)).toBe(true)
    const [first] = world.ofKind('submission_ended')
    expect(first?.outcome).toMatchObject(row.outcome)
    expect(world.spool.totals().delivered + open()).toBe(1)

    await drained()
    expect(ids.map(whatBecameOf)).toEqual([row.becomes])
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 1, dead: 0 })
  })
})
