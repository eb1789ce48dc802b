// Requeue: payloads to their lanes, messages through the mapping.

import { describe, expect, test } from 'vitest'
import type { DeadLetterQuery } from '../../src/dead-letters/dead-letters.ts'
import { eventually } from '../support/eventually.ts'
import {
  openDeadLettersWorld,
  refusedMessage,
  refusedPayload,
  telemetryOf,
  type DeadLettersWorld,
} from '../support/dead-letters-world.ts'
import { exchangeOf, payloadNamed } from '../support/spool-world.ts'

const never = new AbortController().signal

/** Not as a dry run. */
function requeue({ operations }: DeadLettersWorld, query: DeadLetterQuery) {
  return operations.requeue(query, { dryRun: false }, never)
}

describe('requeue', () => {
  test('sends payloads under their payloadId with attempts from 0, also those in the dedup window, and removes the dead letters', async () => {
    const world = await openDeadLettersWorld()
    // The window knows it: it came a moment ago.
    await world.publish('a')
    await world.sent()
    await world.add(refusedPayload('a'), refusedPayload('b'))
    const report = await requeue(world, {})
    expect(report).toEqual({ dryRun: false, payloads: 2, left: {}, missing: [], remap: null })
    expect(await world.left()).toEqual([])
    const lane = world.spool.lanes().find(({ pending }) => pending > 0)!.id
    const batch = await world.spool.seal(lane, { payloadsMax: 10, bodyBytesMax: 1e6 })
    const loaded = await world.spool.load(batch!)
    if (loaded.kind !== 'content') throw new Error('damaged')
    expect(loaded.content.payloadIds()).toEqual([payloadNamed('a').payloadId, payloadNamed('b').payloadId])
    expect(loaded.content.attempts()).toEqual([0, 0])
    expect(JSON.parse(loaded.content.payload(0).toString())).toEqual(telemetryOf('a'))
    expect(world.eventsOf('dead_letters_requeued')).toEqual([
      { kind: 'dead_letters_requeued', deadLetters: 2, payloads: 2 },
    ])
    expect(world.operations.counters().requeued).toBe(2)
  })

  test('requeues what is selected and leaves the rest', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedPayload('b'), refusedPayload('c', { reason: 'Internal' }))
    await requeue(world, { reason: 'Validation', device: 'b' })
    expect(await world.left()).toEqual(['a', 'c'])
    const report = await requeue(world, { ids: [await world.idOf('c'), 'f'.repeat(32)] })
    expect(report).toMatchObject({ payloads: 1, missing: ['f'.repeat(32)] })
    expect(await world.left()).toEqual(['a'])
  })

  test('a dry run reports what would be sent and changes nothing', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedPayload('b'))
    expect(await world.operations.requeue({}, { dryRun: true }, never)).toMatchObject({ payloads: 2 })
    expect([await world.left(), world.payloads()]).toEqual([['a', 'b'], 0])
    expect(world.eventsOf('dead_letters_requeued')).toEqual([])
  })

  test('maps messages again with the mapping in force', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedMessage('one'), refusedMessage('two', { reason: 'NO_TIME' }))
    const report = await requeue(world, { reason: 'NOT_JSON' })
    expect(world.remapped).toEqual([['one']])
    expect(report.remap).toMatchObject({ deadLetters: 1 })
  })

  test('leaves what an operator dropped from quarantine, unless its reason or id is selected', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedMessage('one', { reason: 'DROPPED_BY_OPERATOR', device: 'one' }))
    const all = await requeue(world, {})
    expect(all).toMatchObject({ left: { [Object.keys(all.left)[0]!]: 1 }, remap: null })
    expect(Object.keys(all.left)[0]).toMatch(
      /dropped from quarantine by an operator; .*--reason DROPPED_BY_OPERATOR/,
    )
    expect(world.remapped).toEqual([])
    await requeue(world, { reason: 'DROPPED_BY_OPERATOR' })
    await requeue(world, { ids: [await world.idOf('one')] })
    expect(world.remapped).toEqual([['one'], ['one']])
  })

  test('leaves payloads of a provider that is not in the config, and reports it', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a', { provider: 'gone' as never }))
    const { left, payloads } = await requeue(world, {})
    expect([payloads, left]).toEqual([0, { 'the provider "gone" is not in the config': 1 }])
    expect(await world.left()).toEqual(['a'])
  })

  test('dead letters that arrive during the work are left for the next requeue', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'))
    const later = world.clock.now() + 1
    await world.add(refusedPayload('b', { at: later }))
    const requeuing = requeue(world, {})
    world.clock.stepWall(10)
    await requeuing
    expect(await world.left()).toEqual(['b'])
  })

  test('a dead letter stamped by a clock that was ahead is requeued', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a', { at: world.clock.now() + 86_400_000 }))
    expect(await requeue(world, {})).toMatchObject({ payloads: 1 })
    expect(await world.left()).toEqual([])
  })

  test('a client that closes the connection while the spool is full changes and counts nothing', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'), refusedPayload('b'))
    await world.publish('waits for its delivery')
    const stop = new AbortController()
    world.becomeFull()
    const timers = world.clock.pending()
    const requeuing = world.operations.requeue({}, { dryRun: false }, stop.signal)
    await eventually(() => world.clock.pending() > timers)
    stop.abort()
    expect(await requeuing).toMatchObject({ payloads: 0 })
    expect(world.operations.counters().requeued).toBe(0)
    expect(world.eventsOf('dead_letters_requeued')).toEqual([])
    expect(await world.left()).toEqual(['a', 'b'])
  })

  test('a dead letter that another command takes ends the operations, and each payload is in one place', async () => {
    const world = await openDeadLettersWorld()
    const deadLetters = Array.from({ length: 1200 }, (_, n) => refusedPayload(`truck-${n}`))
    await world.spool.exchange(exchangeOf({ deadLetters }))
    const stop = new AbortController()
    // Caught at once: it may end while the other one is still being waited for.
    const requeuing = world.operations.requeue({}, { dryRun: false }, stop.signal).then(
      () => 'all gone',
      (error: unknown) => (error as { code?: string }).code,
    )
    const last = await world.idOf('truck-1199')
    const taken = await world.spool.exchange(exchangeOf({ take: [last] })).then(
      () => 1,
      () => 0,
    )
    expect(['all gone', 'SPOOL_ENTRY_GONE']).toContain(await requeuing)
    const left = await world.left()
    expect(left.length + world.payloads()).toBe(1200 - taken)
    expect(new Set(left).size).toBe(left.length)
  })
})
