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
})
