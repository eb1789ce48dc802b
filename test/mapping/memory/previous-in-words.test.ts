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
  [{ type: 'USED', path: '$previous.fuel', minus: 'fuel' }],
  [{ type: 'USED', path: ['$previous.fuel', '$previous.tank'], minus: 'fuel' }],
  [{ type: 'USED', path: 'fuel', minus: '$previous.fuel', scale: -1 }],
])('a difference of %j spans values that are no number, wherever $previous stands', (signal) => {
  for (const none of ['n/a', 4_294_967_295, true, { litres: 45 }])
    expect(sentOf({ signals: [signal] }, [{ fuel: 50 }, { fuel: none }, { fuel: 42.5 }])[2]).toBe('7.5')
})

test('words and texts are kept where a table or a bit reads them', () => {
  const was = { type: 'number', path: '$previous.state', values: { RUN: 7 }, plus: 'n' }
  expect(sentOf({ fields: { x: was } }, [{ state: 'RUN' }, { n: 1 }])).toEqual([undefined, 8])
  const bit = { type: 'number', path: '$previous.mask', bit: 4, plus: 'n' }
  expect(sentOf({ fields: { x: bit } }, [{ mask: '0x1F' }, { n: 1 }])).toEqual([undefined, 2])
})

test('the name of the unit before is kept beside a difference', () => {
  const unit = { path: '$previous.u', values: { km: 'km', mi: 'mi' } }
  const signal = { type: 'DISTANCE', path: 'odo', minus: '$previous.odo', unit }
  expect(sentOf({ signals: [signal] }, [{ odo: 10, u: 'mi' }, { odo: 12 }])).toEqual([undefined, '3.218688'])
})

test.each(['over', 'plus', 'minus', 'when', 'negative', 'values', 'path'])(
  'a field may be named %s, like a word',
  (name) => {
    const mapper = openMapperOf([
      truckSource({ fields: { [name]: { type: 'text', path: '$previous.driver' } } }),
    ])
    const at = (second: number) => messageOf({ ts: ts + second * 1000, ...place, driver: 'Ada' })
    mapper.map(at(0))
    expect(sentIn(mapper.map(at(1)))).toMatchObject({ [name]: 'Ada' })
  },
)

test('of two counters each has its own signal, so that no difference is of both', () => {
  const distance = (path: string) => ({ type: 'DISTANCE', path, minus: `$previous.${path}` })
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
    path: 'odo',
    minus: '$previous.odo',
    unit: { path: 'u', values: { km: 'km', mi: 'mi' } },
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
