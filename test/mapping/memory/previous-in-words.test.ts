// Values of the record before in the words of fields: which of them are kept in mind, and what is computed.

import { expect, test } from 'vitest'
import { messageOf, openMapperOf, sentIn, truckSource } from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000
const place = { lat: 48.8566, lon: 2.3522 }

/** What each message sends of the fields, one second after the other. */
function sentOf(map: Record<string, unknown>, messages: readonly object[]): unknown[] {
  const mapper = openMapperOf([truckSource(map)])
  return messages.map((message, second) => {
    const { signals, ...sent } = sentIn(
      mapper.map(messageOf({ ts: ts + second * 1000, ...place, ...message })),
    )
    const { x } = sent as { x?: unknown }
    return x ?? signals?.map(({ value }) => value).join(' ')
  })
}

test.each([
  [{ type: 'USED', expr: 'previous.fuel - fuel' }],
  [{ type: 'USED', expr: '(has(previous.fuel) ? number(previous.fuel) : number(previous.tank)) - fuel' }],
  [{ type: 'USED', expr: 'fuel - previous.fuel', scale: -1 }],
])('a difference of %j spans values that are no number, wherever `previous` stands', (signal) => {
  for (const none of ['n/a', 4_294_967_295, true, { litres: 45 }])
    expect(sentOf({ signals: [signal] }, [{ fuel: 50 }, { fuel: none }, { fuel: 42.5 }])[2]).toBe('7.5')
})

test('words and texts are kept where they are not computed with', () => {
  const was = { type: 'number', expr: 'previous.state == "RUN" ? n : null' }
  expect(sentOf({ fields: { x: was } }, [{ state: 'RUN' }, { n: 1 }])).toEqual([undefined, 1])
  const bit = { type: 'number', expr: 'bit(previous.mask, 4) + n' }
  expect(sentOf({ fields: { x: bit } }, [{ mask: '0x1F' }, { n: 1 }])).toEqual([undefined, 2])
})

test('of two counters each has its own signal, so that no difference is of both', () => {
  const distance = (path: string) => ({ type: 'DISTANCE', expr: `${path} - previous.${path}` })
  const messages = [{ can: 100 }, { gnss: 5000 }, { can: 103, gnss: 5004 }, { gnss: 5005 }]
  expect(sentOf({ signals: [distance('can'), distance('gnss')] }, messages)).toEqual([
    undefined,
    undefined,
    '3',
    '1',
  ])
})

test('a difference is omitted where the unit is another one than before', () => {
  const signal = {
    type: 'DISTANCE',
    expr: '(odo - previous.odo) * (u == "mi" ? 1.609344 : 1)',
    value_unit: 'KILOMETERS',
    when: 'u == previous.u',
  }
  const messages = [
    { odo: 10, u: 'mi' },
    { odo: 12, u: 'mi' },
    { odo: 20, u: 'km' },
    { odo: 21, u: 'km' },
  ]
  expect(sentOf({ signals: [signal] }, messages)).toEqual([undefined, '3.218688', undefined, '1'])
})
