// Edit: a corrected payload replaces the refused one.

import { describe, expect, test } from 'vitest'
import {
  openDeadLettersWorld,
  refusedMessage,
  refusedPayload,
  telemetryOf,
  type DeadLettersWorld,
} from '../support/dead-letters-world.ts'
import { payloadNamed } from '../support/spool-world.ts'

const never = new AbortController().signal

describe('edit', () => {
  const edited = (world: DeadLettersWorld, id: string, payload: unknown) =>
    world.operations.edit(id, typeof payload === 'string' ? payload : JSON.stringify(payload), never)

  test('sends the corrected payload under the same payloadId', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'))
    const id = await world.idOf('a')
    const corrected = telemetryOf('a', { gps: { latitude: 1, longitude: 2 }, more: { fields: [1] } })
    const { payloadId } = payloadNamed('a')
    expect(await edited(world, id, corrected)).toEqual({ id, payloadId, previousPayloadId: payloadId })
    expect(await world.sent()).toEqual([corrected])
    expect(await world.left()).toEqual([])
    expect(world.eventsOf('dead_letter_edited')).toHaveLength(1)
  })

  test('a payload without a payloadId gets the former one as its first field', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'))
    const { payloadId: _without, ...rest } = telemetryOf('a')
    await edited(world, await world.idOf('a'), rest)
    expect(Object.keys((await world.sent())[0]!)[0]).toBe('payloadId')
  })

  test.each([
    ['device', { deviceIdentifier: { id: 'b' } }],
    ['time', { signalTimestamp: 5 }],
    ['asset', { assetIdentifier: { id: 'x' } }],
  ])(
    'another %s makes it another reading with a new payloadId, the same for the same edit',
    async (_, changes) => {
      const ids: string[] = []
      for (let round = 0; round < 2; round += 1) {
        const world = await openDeadLettersWorld()
        await world.add(refusedPayload('a'))
        const { payloadId, previousPayloadId: was } = await edited(
          world,
          await world.idOf('a'),
          telemetryOf('a', changes),
        )
        expect(payloadId).not.toBe(was)
        expect(payloadId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect((await world.sent())[0]).toEqual(telemetryOf('a', { ...changes, payloadId }))
        ids.push(payloadId)
      }
      expect(ids[0]).toBe(ids[1])
    },
  )

  test.each([
    ['no JSON', '{', /not JSON/],
    ['a list', [], /not a JSON object/],
    [
      'a latitude beyond the pole',
      telemetryOf('a', { gps: { latitude: 91, longitude: 0 } }),
      /gps\.latitude/,
    ],
    [
      'a latitude that is empty',
      telemetryOf('a', { gps: { latitude: null, longitude: 0 } }),
      /gps\.latitude/,
    ],
    ['a time that is text', telemetryOf('a', { signalTimestamp: 'now' }), /signalTimestamp/],
    [
      'a signal whose value is a number',
      telemetryOf('a', { signals: [{ type: 'X', value: 1 }] }),
      /signals\.0\.value/,
    ],
    ['no measurement', telemetryOf('a', { gps: undefined }), /neither gps nor signals/],
    [
      'no device and no asset',
      telemetryOf('a', { deviceIdentifier: undefined }),
      /neither a device nor an asset/,
    ],
    ['another payloadId', telemetryOf('a', { payloadId: payloadNamed('b').payloadId }), /do not change it/],
    ['a megabyte', telemetryOf('a', { note: 'x'.repeat(1024 ** 2) }), /more than 262144 bytes/],
  ])('refuses %s, and the dead letter stays', async (_, payload, why) => {
    const world = await openDeadLettersWorld()
    await world.add(refusedPayload('a'))
    await expect(edited(world, await world.idOf('a'), payload)).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
      why: expect.stringMatching(why) as string,
    })
    expect([await world.left(), world.payloads()]).toEqual([['a'], 0])
  })

  test('refuses a message, which has no payload, and an id that does not exist', async () => {
    const world = await openDeadLettersWorld()
    await world.add(refusedMessage('one', { device: 'one' }))
    await expect(edited(world, await world.idOf('one'), {})).rejects.toMatchObject({
      code: 'DEAD_LETTER_INVALID',
    })
    await expect(edited(world, 'f'.repeat(32), {})).rejects.toMatchObject({ code: 'SPOOL_ENTRY_GONE' })
  })
})
