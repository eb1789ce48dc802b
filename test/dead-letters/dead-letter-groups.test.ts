// Dead letters by cause, and which of them a query selects.

import { describe, expect, test } from 'vitest'
import { type DeadLetterQuery } from '../../src/dead-letters/dead-letters.ts'
import { openDeadLettersWorld, refusedMessage, refusedPayload } from '../support/dead-letters-world.ts'

describe('the list of dead letters', () => {
  test('groups them by stage, reason and the fields that the service named, with the number of devices', async () => {
    const world = await openDeadLettersWorld()
    const speed = (n: number) => ({
      payloadId: 'p',
      errorType: 'Validation',
      errorMessage: 'no',
      validationErrorDetails: [{ field: 'gps.speed', message: `is ${n}, at most 200` }],
    })
    await world.add(
      ...['a', 'b', 'a', 'c'].map((device, n) => refusedPayload(device, { at: 1000 + n })),
      refusedPayload('d', { failure: speed(900) }),
      refusedPayload('e', { failure: speed(1000) }),
      refusedMessage('one'),
    )
    const { groups, scanned, more } = await world.operations.list({}, 10)
    expect([scanned, more]).toEqual([7, false])
    expect(groups).toMatchObject([
      {
        stage: 'delivery',
        fields: 'gps.latitude must not be empty',
        count: 4,
        devices: 3,
        oldestAt: 1000,
        latestAt: 1003,
      },
      { stage: 'delivery', fields: 'gps.speed is 900, at most 200', count: 2, devices: 2 },
      { stage: 'mapping', reason: 'NOT_JSON', source: 'trucks', fields: null, count: 1 },
    ])
  })

  test.each<[string, DeadLetterQuery, string[]]>([
    ['a stage', { stage: 'mapping' }, ['message']],
    ['a device', { device: 'a' }, ['a']],
    ['a source', { source: 'trucks' }, ['message']],
    ['a provider', { provider: 'other' }, ['b']],
    ['a time', { since: 2000, until: 3000 }, ['b']],
    ['a reason', { reason: 'Internal' }, ['c']],
    ['all of these', { stage: 'delivery', since: 2000, reason: 'Internal' }, ['c']],
  ])('can be selected by %s', async (_, query, expected) => {
    const world = await openDeadLettersWorld()
    await world.add(
      refusedPayload('a', { at: 1000 }),
      refusedPayload('b', { at: 2000, provider: 'other' as never }),
      refusedPayload('c', { at: 3000, reason: 'Internal' }),
      refusedMessage('message', { device: 'message' }),
    )
    const { deadLetters } = await world.operations.list(query, 10)
    expect(deadLetters.map(({ device }) => device)).toEqual(expected)
  })
})
