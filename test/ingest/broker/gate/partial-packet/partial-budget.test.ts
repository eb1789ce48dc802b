import { describe, expect, test } from 'vitest'
import {
  createPartialBudget,
  type PartialHolder,
} from '../../../../../src/ingest/broker/gate/partial-packet/partial-budget.ts'

function world(partialBytesMax: number) {
  const budget = createPartialBudget({ partialBytesMax })
  const closed: string[] = []
  const details: string[] = []
  function holder(name: string, address: string, received = 100): PartialHolder {
    const close = (detail: string) => {
      closed.push(name)
      details.push(detail)
    }
    return { address, counted: 0, received, ageMs: 1000, close }
  }
  return { budget, closed, details, holder }
}

describe('the memory of partial packets', () => {
  test('belongs to whoever needs it while there is room', () => {
    const { budget, closed, holder } = world(1000)
    const only = holder('only', '192.0.2.1')
    budget.count(only, 1000)
    expect(closed).toEqual([])
    expect(budget.counters()).toEqual({ partialBytes: 1000 })
    budget.count(only, 0)
    expect(budget.counters()).toEqual({ partialBytes: 0 })
  })

  test('when it is spent, the slowest of the address with the largest share is closed', () => {
    const { budget, closed, details, holder } = world(1000)
    budget.count(holder('fast', '192.0.2.1', 900), 300)
    budget.count(holder('slow', '192.0.2.1', 100), 200)
    budget.count(holder('slower, with a smaller share', '192.0.2.2', 10), 400)
    budget.count(holder('late', '192.0.2.3'), 150)
    expect(closed).toEqual(['slow'])
    expect(details[0]).toContain('192.0.2.1 has the largest share, 500 bytes in 2 connections')
    expect(budget.counters()).toEqual({ partialBytes: 850 })
  })

  test('as many are closed as it takes, the newcomer itself where it has the largest share', () => {
    const { budget, closed, holder } = world(1000)
    budget.count(holder('a', '192.0.2.1'), 300)
    budget.count(holder('b', '192.0.2.2'), 300)
    const greedy = holder('greedy', '192.0.2.3')
    budget.count(greedy, 300)
    budget.count(greedy, 600)
    expect(closed).toEqual(['greedy'])
    expect(budget.counters()).toEqual({ partialBytes: 600 })
  })

  test('the addresses of one IPv6 network are one share', () => {
    const { budget, closed, holder } = world(1000)
    budget.count(holder('one', '2001:db8::1', 50), 300)
    budget.count(holder('two', '2001:db8::2', 60), 300)
    budget.count(holder('another network', '2001:db8:1::1', 1), 400)
    budget.count(holder('last', '192.0.2.1'), 1)
    expect(closed).toEqual(['one'])
  })
})
