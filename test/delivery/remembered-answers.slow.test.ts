// An answer that names every payload is settled, and its batchId is never sent again: shown with a service that
// remembers batchIds in each of the ways that the specification leaves open. The test moves the clock.

import { afterEach, describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/std/gateway-error.ts'
import type { DeadLetter } from '../../src/domain/dead-letter.ts'
import type { RetryRule } from '../../src/delivery/delivery-options.ts'
import { createDeliveryWorld, type DeliveryWorld } from '../support/delivery-world.ts'
import {
  acceptAll,
  breakdown,
  failAll,
  remembering,
  repeatModes,
  type Received,
  type Reply,
  type Script,
} from '../support/scripted-service.ts'

let world: DeliveryWorld

afterEach(() => world.end())

const minuteMs = 60_000
const hourMs = 60 * minuteMs

const open = () => world.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
const endpoint = (name = 'default') =>
  world.delivery.providers().find((provider) => provider.name === name)?.endpoint

/** batchIds that were sent more than once. */
function sentTwice(): string[] {
  const times = new Map<string, number>()
  for (const { batchId, single } of world.service.received)
    if (!single) times.set(batchId, (times.get(batchId) ?? 0) + 1)
  return [...times].filter(([, sent]) => sent > 1).map(([batchId]) => batchId)
}

/** Fails the payloads that `errorOf` names a type for, and accepts the others. */
function failing(errorOf: (payloadId: string) => string | null): (one: Received) => Reply {
  return ({ payloadIds }) => {
    const accepted: string[] = []
    const failed: { payloadId: string; errorType: string }[] = []
    for (const payloadId of payloadIds) {
      const errorType = errorOf(payloadId)
      if (errorType === null) accepted.push(payloadId)
      else failed.push({ payloadId, errorType })
    }
    return breakdown({ accepted, failed })
  }
}

/** The service answers by what is set last, and remembers batchIds all the time. */
function switched(mode: (typeof repeatModes)[number], first: Script) {
  let current = first
  return {
    script: remembering(mode, (one, index) => current(one, index)),
    answer: (next: Script) => void (current = next),
  }
}

function deadLetter(n: number): DeadLetter {
  return {
    stage: 'mapping',
    at: 0,
    reason: 'UNMAPPABLE',
    detail: 'x'.repeat(1000) + n,
    provider: null,
    device: null,
    envelope: null,
    payload: null,
    payloadId: null,
    batchId: null,
    requestId: null,
    failure: null,
  }
}

async function fillDeadLetters(): Promise<void> {
  for (let n = 0; !world.spool.deadLettersFull() && n < 1000; n += 1) {
    world.spool.addDeadLetter(deadLetter(n))
    await new Promise<void>((resolve) => {
      world.spool.endMessage(() => resolve())
    })
  }
  expect(world.spool.deadLettersFull()).toBe(true)
}

async function makeRoom(): Promise<void> {
  const take: string[] = []
  for await (const { id } of world.spool.deadLetters({ limit: 10_000, stage: 'mapping' })) take.push(id)
  await world.spool.exchange({ take, payloads: [], deadLetters: [], stateChanges: [] })
  expect(world.spool.deadLettersFull()).toBe(false)
}

describe.each(repeatModes)('a service that answers a known batchId with "%s"', (mode) => {
  test('and the dead letters are full: what it accepted is delivered, what it refused waits and becomes a dead letter', async () => {
    let guilty = ''
    const service = switched(
      mode,
      failing((id) => (id === guilty ? 'Validation' : null)),
    )
    const retryRules = new Map<string, RetryRule>([
      ['Validation', []],
      ['default', [10_000]],
    ])
    world = await createDeliveryWorld({
      script: service.script,
      provider: { retryRules, onRepeat: 'delivered' },
      spool: { deadLetterBytesMax: 64 * 1024 },
      startNow: false,
    })
    await fillDeadLetters()
    ;[guilty = ''] = await world.publish('guilty', 'b', 'c')
    world.delivery.start()
    await world.pass(2 * hourMs)
    expect(world.spool.totals()).toMatchObject({ delivered: 2, dead: 0, heldBatches: 0 })
    const sent = world.service.received.length
    expect(sent).toBe(1)
    // A restart changes nothing.
    await world.crash()
    await world.pass(2 * hourMs)
    expect(world.service.received.length).toBe(sent)
    await makeRoom()
    await world.pass(10 * minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 0, dead: 1 })
    expect(sentTwice()).toEqual([])
  })

  test('and ends between the answer and its settle: the remembered answer of an outage buries nothing', async () => {
    const service = switched(mode, failAll('Internal'))
    const retryRules = new Map<string, RetryRule>([['default', []]])
    world = await createDeliveryWorld({
      script: service.script,
      provider: { retryRules, onRepeat: 'resend' },
      startNow: false,
    })
    await world.publish('a', 'b', 'c')
    // The answer arrives, and the process ends with it.
    const act = 'none'
    const closed = new GatewayError('SPOOL_CLOSED', { what: 'Not written.', why: 'The end.', act })
    world.spool.settle = () => Promise.reject(closed)
    world.delivery.start()
    await world.pass(1000)
    expect(world.service.received).toHaveLength(1)
    service.answer(acceptAll)
    await world.crash()
    await world.pass(10 * minuteMs)
    expect(open()).toBe(0)
    expect(world.spool.totals()).toMatchObject({ delivered: 3, dead: 0 })
  })
})
test('what waits for room in the dead letters has a bound: then its provider waits, and others do not', async () => {
  const bytesMax = 16 * 1024 * 1024
  const isGuilty = new Set<string>()
  world = await createDeliveryWorld({
    script: failing((id) => (isGuilty.has(id) ? 'Validation' : null)),
    providers: ['one', 'other'],
    provider: { retryRules: new Map<string, RetryRule>([['Validation', []]]) },
    spool: { bytesMax, deadLetterBytesMax: 64 * 1024 },
  })
  await fillDeadLetters()
  const waitingBytes = () =>
    world.spool
      .lanes()
      .filter(({ role }) => role.kind === 'retry')
      .reduce((sum, { pendingBytes, sealedBytes }) => sum + pendingBytes + sealedBytes, 0)
  const isWaiting = () =>
    world.states('DELIVERY_STALLED').some(({ reason }) => reason === 'dead_letters_full')
  for (let n = 0; n < 2000 && !isWaiting(); n += 1) {
    const names = ['a', 'b', 'c'].map((name) => `${name}${n}${'x'.repeat(8000)}`)
    for (const id of await world.publishFor('one', ...names)) isGuilty.add(id)
    await world.pass(1100)
  }
  expect(isWaiting()).toBe(true)
  expect(waitingBytes()).toBeLessThan((0.05 * bytesMax) / 2)
  expect(waitingBytes()).toBeGreaterThan((0.04 * bytesMax) / 2)
  await world.publishFor('other', 'd', 'e', 'f')
  await world.pass(2000)
  expect(world.spool.totals()).toMatchObject({ delivered: 3, dead: 0, heldBatches: 0 })
  expect(endpoint('one')).toBe('available')
})
