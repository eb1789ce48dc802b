import { afterEach, describe, expect, test } from 'vitest'
import type { ProviderName } from '../../../src/domain/ids.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { ReturnedPayload } from '../../../src/delivery/delivery.ts'
import { decodeReceipt } from '../../../src/receipts/receipts.ts'
import { createDeliveryWorld, type DeliveryWorld } from '../../support/delivery-world.ts'
import { acceptAll, failAll, type Script } from '../../support/scripted-service.ts'
import { payloadNamed } from '../../support/spool-world.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const signal = new AbortController().signal
const minute = 60_000
const old = { olderThanMs: minute, payloadsMax: 500, providersDown: [] }
const refuse =
  (status: number): Script =>
  () => ({ status, body: { requestId: 'request-9', message: `answer ${status}` } })
const accepts = (...names: readonly string[]): Script => {
  const ids = new Set<string>(names.map((name) => payloadNamed(name).payloadId))
  return (received, index) =>
    received.payloadIds.every((id) => ids.has(id)) ? acceptAll(received) : refuse(400)(received, index)
}

const totals = () => world.spool.totals()
const laneOf = (kind: string) => world.spool.lanes().find(({ role }) => role.kind === kind)!
const sentNames = () => world.service.received.flatMap(({ payloadIds }) => payloadIds)
const idsOf = (...names: readonly string[]) => names.map((name) => payloadNamed(name).payloadId)

function keep() {
  const kept: ReturnedPayload[] = []
  return {
    kept,
    ids: () => kept.map(({ payloadId }) => payloadId),
    hand: async (payloads: readonly ReturnedPayload[]) => void kept.push(...payloads),
  }
}

async function outcomes(): Promise<string[]> {
  const receipts = await world.spool.receipts({ limit: 100 })
  return receipts.flatMap(({ value }) => {
    const receipt = decodeReceipt(value)!
    return Array.from({ length: receipt.entries.count }, (_, index) => {
      const { outcome, reason } = receipt.settlement(index)
      return `${outcome} ${reason} ${receipt.entries.at(index).device}`
    })
  })
}

describe('payloads of a retry lane', () => {
  test('are handed over with their attempts when they wait for long enough, and removed then', async () => {
    world = await createDeliveryWorld({ script: failAll('Validation'), ledger: true })
    await world.publish('a', 'b', 'c')
    await world.pass(10)
    const { kept, hand } = keep()
    expect(await world.delivery.returns.returnWaiting(old, hand, signal)).toBe(0)
    await world.pass(minute)
    expect(await world.delivery.returns.returnWaiting(old, hand, signal)).toBe(3)
    expect(kept.map(({ payloadId }) => payloadId)).toEqual(idsOf('a', 'b', 'c'))
    expect(kept[0]).toMatchObject({ provider: defaultProvider, attempts: 1 })
    expect(kept[0]?.json.toString()).toBe(payloadNamed('a').json)
    expect(totals()).toMatchObject({ returned: 3, openBytes: 0 })
    expect(await outcomes()).toEqual(['returned PARKED a', 'returned PARKED b', 'returned PARKED c'])
    expect(world.ofKind('payloads_returned')).toMatchObject([{ payloads: 3, reason: 'PARKED' }])
    world.service.answer(acceptAll)
    await world.pass(3_600_000)
    expect(world.service.received).toHaveLength(1)
  })

  test('are still here, and are sent in their turn, where they could not be handed over', async () => {
    world = await createDeliveryWorld({ script: failAll('Validation') })
    await world.publish('a')
    await world.pass(2 * minute)
    const refused = world.delivery.returns.returnWaiting(old, () => Promise.reject(new Error('full')), signal)
    await expect(refused).rejects.toThrow('full')
    expect(totals()).toMatchObject({ returned: 0 })
    expect(laneOf('retry')).toMatchObject({ pending: 1 })
    world.service.answer(acceptAll)
    await world.pass(2 * minute)
    expect(totals()).toMatchObject({ delivered: 0 })
    await world.pass(2 * minute)
    expect(totals()).toMatchObject({ delivered: 1 })
  })

  test('are not removed and not sent before they are handed over', async () => {
    world = await createDeliveryWorld({ script: failAll('Validation') })
    await world.publish('a')
    await world.pass(299_000)
    world.service.answer(acceptAll)
    let confirm = () => {}
    const confirmed = new Promise<void>((resolve) => {
      confirm = resolve
    })
    const returned = world.delivery.returns.returnWaiting(old, () => confirmed, signal)
    // Their turn comes meanwhile.
    await world.pass(10 * minute)
    expect(world.service.received).toHaveLength(1)
    expect(laneOf('retry')).toMatchObject({ pending: 1, open: 1 })
    confirm()
    expect(await returned).toBe(1)
    await world.pass(10 * minute)
    expect(world.service.received).toHaveLength(1)
    expect(totals()).toMatchObject({ returned: 1, delivered: 0 })
  })

  test('go up to the number that is asked for, the oldest first', async () => {
    world = await createDeliveryWorld({ script: failAll('Validation') })
    for (const name of ['a', 'b', 'c', 'd']) {
      await world.publish(name)
      await world.pass(2000)
    }
    await world.pass(2 * minute)
    const { ids, hand } = keep()
    expect(await world.delivery.returns.returnWaiting({ ...old, payloadsMax: 2 }, hand, signal)).toBe(2)
    expect(ids()).toEqual(idsOf('a', 'b'))
    expect(laneOf('retry')).toMatchObject({ pending: 2 })
  })
})

describe('a held batch', () => {
  const held = async (script: Script, ...names: readonly string[]) => {
    world = await createDeliveryWorld({ script, ledger: true, provider: { onRefusedRepeat: 'hold' } })
    await world.publish(...names)
    await world.pass(2 * minute)
    return world.spool.totals().heldBatches
  }

  test('that the service has refused is handed over and removed', async () => {
    // Nothing is accepted, so a payload that is refused alone does not become a dead letter.
    expect(await held(refuse(400), 'a')).toBe(1)
    const { ids, hand } = keep()
    expect(await world.delivery.returns.returnWaiting(old, hand, signal)).toBe(1)
    expect(ids()).toEqual(idsOf('a'))
    expect(totals()).toMatchObject({ returned: 1, heldBatches: 0, openBytes: 0, deadLetters: 0 })
    expect(await outcomes()).toEqual(['returned PARKED a'])
    expect(world.states('BATCHES_HELD')).toEqual([])
    const sent = world.service.received.length
    await world.pass(60 * minute)
    expect(world.service.received).toHaveLength(sent)
  })

  test('that the service may have processed stays', async () => {
    let answers = 0
    const script: Script = (received, index) => {
      answers += 1
      return answers === 1 ? 'reset' : refuse(400)(received, index)
    }
    expect(await held(script, 'a', 'b')).toBe(1)
    const { ids, hand } = keep()
    expect(await world.delivery.returns.returnWaiting(old, hand, signal)).toBe(0)
    expect(ids()).toEqual([])
    expect(totals()).toMatchObject({ returned: 0, heldBatches: 1, heldPayloads: 2 })
  })

  test('that was answered 409, or was sealed before a crash, stays', async () => {
    expect(await held(refuse(409), 'a')).toBe(1)
    const { hand } = keep()
    expect(await world.delivery.returns.returnWaiting(old, hand, signal)).toBe(0)
    await world.end()
    expect(await held(refuse(400), 'a')).toBe(1)
    await world.crash()
    await world.pass(2 * minute)
    expect(await world.delivery.returns.returnWaiting(old, hand, signal)).toBe(0)
    expect(totals()).toMatchObject({ returned: 0 })
  })

  test('is kept and sent again where it could not be handed over', async () => {
    expect(await held(refuse(400), 'a')).toBe(1)
    const refused = world.delivery.returns.returnWaiting(old, () => Promise.reject(new Error('full')), signal)
    await expect(refused).rejects.toThrow('full')
    expect(totals()).toMatchObject({ returned: 0, heldBatches: 1 })
    world.service.answer(acceptAll)
    await world.pass(60 * minute)
    expect(totals()).toMatchObject({ delivered: 1, heldBatches: 0 })
  })

  test('is not sent while it is handed over', async () => {
    expect(await held(refuse(400), 'a')).toBe(1)
    let confirm = () => {}
    const confirmed = new Promise<void>((resolve) => {
      confirm = resolve
    })
    const sent = world.service.received.length
    const returned = world.delivery.returns.returnWaiting(old, () => confirmed, signal)
    await world.pass(60 * minute)
    world.delivery.probe()
    await world.pass(minute)
    expect(world.service.received).toHaveLength(sent)
    confirm()
    expect(await returned).toBe(1)
  })
})

describe('a provider that is down', () => {
  test('gives what was never submitted, and keeps what was', async () => {
    const providers = ['up', 'down'] as const
    const script: Script = (received, index) =>
      received.headers['x-provider-key'] === 'down' ? refuse(503)(received, index) : acceptAll(received)
    world = await createDeliveryWorld({ script, providers })
    for (let n = 0; n < 60; n += 1) {
      await world.publishFor('down', `d${n}`)
      await world.publishFor('up', `u${n}`)
      await world.pass(1000)
    }
    await world.pass(2 * minute)
    const { ids, hand } = keep()
    expect(await world.delivery.returns.returnWaiting(old, hand, signal)).toBe(0)
    const request = { ...old, providersDown: ['down' as ProviderName] }
    const returned = await world.delivery.returns.returnWaiting(request, hand, signal)
    expect(returned).toBeGreaterThan(0)
    const sent = new Set(sentNames())
    for (const id of ids()) expect(sent.has(id)).toBe(false)
    const down = world.spool.lanes().filter(({ provider }) => provider === 'down')
    const open = down.reduce((sum, lane) => sum + lane.open, 0)
    expect(open + returned).toBe(60)
    expect(totals()).toMatchObject({ returned, delivered: 60 })
  })

  test('gives batches that never reached the service', async () => {
    world = await createDeliveryWorld({ script: () => 'no connection' })
    await world.publish('a', 'b', 'c')
    await world.pass(2 * minute)
    expect(laneOf('live')).toMatchObject({ sealed: 3 })
    const { ids, hand } = keep()
    const request = { ...old, providersDown: [defaultProvider] }
    expect(await world.delivery.returns.returnWaiting(request, hand, signal)).toBe(3)
    expect(ids()).toEqual(idsOf('a', 'b', 'c'))
    world.service.answer(acceptAll)
    await world.publish('d')
    await world.pass(2 * minute)
    expect(totals()).toMatchObject({ returned: 3, delivered: 1, openBytes: 0 })
  })
})

test('a lost store ends a call, and everything is delivered when it is back', async () => {
  world = await createDeliveryWorld({ script: failAll('Validation') })
  await world.publish('a')
  await world.pass(2 * minute)
  const { hand } = keep()
  world.disk.failNextWrite({ reachesDisk: false })
  await expect(world.delivery.returns.returnWaiting(old, hand, signal)).rejects.toMatchObject({
    code: 'SPOOL_WRITE_FAILED',
  })
  world.service.answer(accepts('a'))
  await world.pass(10 * minute)
  expect(totals()).toMatchObject({ returned: 0, delivered: 1 })
})
