// The oracle of the driver: it must notice what it is there for.

import { expect, test } from 'vitest'
import { judge, nameOf, wrongOrders, type Came, type Expected } from './oracle.ts'
import type { Arrival } from './service.ts'

const sent: Expected[] = [
  { name: 'a 1', isAcked: true, content: 'one' },
  { name: 'a 2', isAcked: true, end: 'dead letter' },
  { name: 'a 3', isAcked: false },
  { name: 'parked', isAcked: true, mayRepeat: true },
  { name: 'parked', isAcked: true, mayRepeat: true },
]
const first: Came = { name: 'a 1', content: 'one' }
const dead: Came = { name: 'a 2', end: 'dead letter' }
const parked: Came = { name: 'parked' }
const whole = [first, dead, parked, parked]
const nothing = { lost: [], twice: [], byTwo: [], unknown: [], wrongEnd: [], wrongContent: [] }

test.each<[string, Came[], object]>([
  ['nothing', whole, {}],
  ['nothing where a message was taken without an acknowledgement', [...whole, { name: 'a 3' }], {}],
  ['nothing where a copy cannot be told from the message', [...whole, parked], {}],
  ['a lost message', [dead, parked, parked], { lost: ['a 1'] }],
  ['one of two equal messages lost', [first, dead, parked], { lost: ['parked'] }],
  ['a message that came twice', [...whole, first], { twice: ['a 1'] }],
  ['one that came by two gateways', [...whole, { ...first, gateway: 'b' }], { byTwo: ['a 1'] }],
  ['one that nobody sent', [...whole, { name: 'a 9' }], { unknown: ['a 9'] }],
  [
    'one that should be a dead letter',
    [first, { name: 'a 2' }, parked, parked],
    { wrongEnd: ['a 2 (service)'] },
  ],
  [
    'other values',
    [{ ...first, content: 'two' }, dead, parked, parked],
    { wrongContent: ['a 1: two instead of one'] },
  ],
])('the oracle finds %s', (_name, came, found) => {
  expect(judge(sent, came)).toEqual({ ...nothing, ...found })
})

const of = (gateway: string, batchId: string, device: string, ...times: number[]): Arrival[] =>
  times.map((ts) => ({ gateway, batchId, device, ts, payloadId: nameOf(device, ts), content: '' }))
const ordered = [
  ...of('a', '1', 'x', 1, 2),
  ...of('a', '1', 'y', 1),
  ...of('a', '2', 'x', 3, 4),
  ...of('a', '2', 'y', 2),
]

test.each<[string, Arrival[], number]>([
  ['nothing', ordered, 0],
  ['nothing in a batch that was delivered later', [...ordered.slice(3), ...ordered.slice(0, 3)], 0],
  ['nothing between two gateways', [...ordered, ...of('b', '3', 'x', 4)], 0],
  ['a batch with a wrong order', [...of('a', '1', 'x', 2, 1), ...ordered.slice(2)], 1],
  ['a message that came in a later batch, too', [...ordered, ...of('a', '3', 'y', 2)], 1],
  [
    'a device that is late by a batch while another is not',
    [
      ...of('a', '1', 'x', 3, 4),
      ...of('a', '1', 'y', 1),
      ...of('a', '2', 'x', 1, 2),
      ...of('a', '2', 'y', 2),
    ],
    2,
  ],
])('the order shows %s', (_name, arrivals, wrong) => {
  expect(wrongOrders(arrivals)).toBe(wrong)
})
