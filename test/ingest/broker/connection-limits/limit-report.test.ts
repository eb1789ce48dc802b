import { describe, expect, test } from 'vitest'
import { createLimitReport } from '../../../../src/ingest/broker/connection-limits/limit-report.ts'
import { createFakeClock } from '../../../support/fake-clock.ts'

function open() {
  const clock = createFakeClock()
  const reports: [string, number, readonly string[]][] = []
  const report = createLimitReport<'few' | 'slow'>(
    clock,
    (limit, count, top) => void reports.push([limit, count, top]),
  )
  const add = (limit: 'few' | 'slow', name: string, times: number) => {
    for (let index = 0; index < times; index += 1) report.add(limit, name)
  }
  return { clock, reports, report, add }
}

describe('the report of a limit', () => {
  test('the first case is reported at once, then at most one report in ten seconds with the number', async () => {
    const { clock, reports, add } = open()
    add('few', 'a', 1000)
    add('slow', 'c', 1)
    expect(reports).toEqual([
      ['few', 1, ['a (1)']],
      ['slow', 1, ['c (1)']],
    ])
    reports.length = 0
    add('few', 'b', 5)
    await clock.advance(9999)
    expect(reports).toEqual([])
    await clock.advance(1)
    expect(reports).toEqual([['few', 1004, ['a (999)', 'b (5)']]])
    await clock.advance(60_000)
    expect(clock.pending(), 'no timer without cases').toBe(0)
    add('few', 'd', 1)
    expect(reports.at(-1)).toEqual(['few', 1, ['d (1)']])
  })

  test('names five of them and counts all', async () => {
    const { clock, reports, report } = open()
    for (let index = 0; index < 5000; index += 1) report.add('few', `10.0.${index}`)
    await clock.advance(10_000)
    expect(reports[1]![1]).toBe(4999)
    expect(reports[1]![2]).toHaveLength(5)
    expect(report.counts()).toEqual(new Map([['few', 5000]]))
  })

  test('ends with the gateway', () => {
    const { clock, report, add } = open()
    add('few', 'a', 2)
    report.close()
    expect(clock.pending()).toBe(0)
  })
})
