// What goes back to the engine in an outage, while other things happen: nothing is lost, nothing stops the gateway.

import { describe, expect, test } from 'vitest'
import { createCustodyParts, type CustodyParts } from '../../support/custody-parts.ts'
import { acceptAll, type Script } from '../../support/scripted-service.ts'

const down: Script = () => ({ status: 503, body: { requestId: 'r', message: 'no' } })
const outage = { script: down, provider: { maxInFlight: 1 } }

const count = 60

/** What is sealed before the outage stays; what comes later is in no batch. One commit for each three messages. */
async function fill(world: CustodyParts): Promise<void> {
  world.words('a', 'b', 'c')
  await world.passUntil(() => world.delivery.providers()[0]!.endpoint !== 'available')
  for (let n = 3; n < count; n += 3) {
    world.words(`word-${n}`, `word-${n + 1}`, `word-${n + 2}`)
    await world.pass(200)
  }
}

describe('while a withdrawal runs', () => {
  test('messages whose payloads are removed are not acknowledged, and nothing more is taken', async () => {
    const finished = Promise.withResolvers<void>()
    let removed = 0
    const world = await createCustodyParts({
      ...outage,
      wrap: ({ withdrawUnsubmitted }) => ({
        // A delivery that has other work between the write and its answer.
        async withdrawUnsubmitted(from, signal) {
          removed = await withdrawUnsubmitted(from, signal)
          await finished.promise
          return removed
        },
      }),
    })
    await fill(world)
    await world.passUntil(() => removed > 0)
    world.service.answer(acceptAll)
    await world.passUntil(() => world.delivery.counters().delivered === count - removed)
    await world.pass(5000)
    // The outage is over, and what comes meanwhile waits, too.
    world.words('late-1', 'late-2')
    await world.pass(5000)
    expect(world.engine.counts.acked).toBe(count - removed)
    expect(world.engine.ready()).toBe(2)
    finished.resolve()
    await world.passUntil(() => world.engine.counts.acked === count + 2)
    expect(world.delivery.counters().delivered).toBe(count + 2)
  })

  test('a stop removes nothing and gives nothing back', async () => {
    const may = Promise.withResolvers<void>()
    let began = false
    const world = await createCustodyParts({
      ...outage,
      wrap: ({ withdrawUnsubmitted }) => ({
        async withdrawUnsubmitted(from, signal) {
          began = true
          await may.promise
          return withdrawUnsubmitted(from, signal)
        },
      }),
    })
    await fill(world)
    await world.passUntil(() => began)
    await world.custody.release()
    may.resolve()
    await world.pass(5000)
    expect(world.engine.counts).toMatchObject({ acked: 0, givenBack: 0 })
    expect(world.spool.lanes().reduce((sum, { open }) => sum + open, 0)).toBe(count)
  })
})
