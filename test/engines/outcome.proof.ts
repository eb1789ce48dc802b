// The judge of the fleets: it must notice what it is there for.

import { expect, test } from 'vitest'
import { judge } from './engine-fleet.ts'

type Delivered = Parameters<typeof judge>[1][number]

const of = (gateway: string, batch: string, device: string, ...numbers: number[]): Delivered[] =>
  numbers.map((number) => ({ gateway, batch, device, number, payloadId: `${device} ${number}` }))

const acked = new Map([
  ['x', 4],
  ['y', 2],
])
const whole = [
  ...of('a', '1', 'x', 1, 2),
  ...of('a', '1', 'y', 1),
  ...of('a', '2', 'x', 3, 4),
  ...of('a', '2', 'y', 2),
]
const fine = { lost: 0, wrongOrder: 0, twiceByOne: 0, twiceByTwo: 0 }

test.each<[string, Delivered[], object]>([
  ['nothing', whole, {}],
  ['a batch that was delivered later', [...whole.slice(3), ...whole.slice(0, 3)], {}],
  ['a lost message', whole.slice(1), { lost: 1 }],
  [
    'a message that one gateway delivered twice',
    [...whole, ...of('a', '3', 'y', 2)],
    { wrongOrder: 1, twiceByOne: 1 },
  ],
  ['a message that two gateways delivered', [...whole, ...of('b', '3', 'x', 4)], { twiceByTwo: 1 }],
  ['an order that is wrong in a batch', [...of('a', '1', 'x', 2, 1), ...whole.slice(2)], { wrongOrder: 1 }],
  [
    'a truck that is late by a batch while the other is not',
    [
      ...of('a', '1', 'x', 3, 4),
      ...of('a', '1', 'y', 1),
      ...of('a', '2', 'x', 1, 2),
      ...of('a', '2', 'y', 2),
    ],
    { wrongOrder: 2 },
  ],
])('the outcome shows %s', (_name, delivered, found) => {
  expect(judge(acked, delivered)).toEqual({ ...fine, ...found })
})
