import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { withProgress, type ReportAmount } from '../../../src/cli/terminal/progress.ts'
import { keptOutput } from '../../support/ops-world.ts'
import { terminalOutput } from '../../support/terminal-screen.ts'

// withProgress takes no clock: it is made for a person who waits.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }))
afterEach(() => void vi.useRealTimers())

/** Work that the test ends. */
function startWork(more: { terminal?: boolean; json?: boolean; streams?: boolean; onTerminal?: boolean }) {
  const stdout = more.onTerminal === true ? terminalOutput() : keptOutput()
  const terminal = terminalOutput()
  const plain = keptOutput()
  const stderr = more.terminal === false ? plain : terminal
  const { promise, resolve } = Promise.withResolvers<string>()
  let report: ReportAmount = () => undefined
  const io = { stdout: stdout.stream, stderr: stderr.stream, env: {}, json: more.json ?? false }
  const { streams = false } = more
  const result = withProgress(io, { what: 'Checking', streams }, (count) => {
    report = count
    return promise
  })
  const after = (ms: number) => {
    vi.advanceTimersByTime(ms)
    return more.terminal === false ? plain.text() : terminal.screen().join('|')
  }
  const end = async () => {
    resolve('result')
    expect(await result).toBe('result')
    expect(stdout.text()).toBe('')
  }
  return { after, end, terminal, report: (amount: Parameters<ReportAmount>[0]) => report(amount) }
}

describe('the progress of long work', () => {
  test('is one line on a terminal, and is removed at the end', async () => {
    const { after, end, report, terminal } = startWork({})
    expect(after(999)).toBe('')
    expect(after(1)).toBe('Checking: 1 s|')
    report({ done: 1024 ** 2, total: 4 * 1024 ** 2, unit: 'bytes' })
    expect(after(3000)).toBe('Checking: 1.0 MiB of 4.0 MiB (25 %), 256.0 KiB/s, 12 s left|')
    // Another part of the work: its rate counts from its begin.
    report({ done: 0, unit: 'records' })
    vi.advanceTimersByTime(1000)
    report({ done: 500, unit: 'records' })
    expect(after(1000)).toBe('Checking: 500 records, 250/s, 6 s|')
    await end()
    expect(after(60_000)).toBe('')
    expect(terminal.screen()).toEqual([''])
  })

  test('is drawn at most every 200 ms', async () => {
    const { after, end, report, terminal } = startWork({})
    after(2000)
    const before = terminal.text().length
    for (let done = 0; done < 1000; done += 1) report({ done, unit: 'lines' })
    expect(terminal.text()).toHaveLength(before)
    after(200)
    expect(terminal.text().length).toBeGreaterThan(before)
    await end()
  })

  test('is a plain line every ten seconds elsewhere', async () => {
    const { after, end } = startWork({ terminal: false })
    expect(after(9999)).toBe('')
    expect(after(10_001)).toBe('Checking: 10 s\nChecking: 20 s\n')
    await end()
  })

  test.each([
    ['--json in a pipe, where stderr has JSON', { terminal: false, json: true }],
    ['output on the terminal meanwhile', { streams: true, onTerminal: true }],
  ])('is not shown with %s', async (_case, options) => {
    const { after, end } = startWork(options)
    expect(after(60_000)).toBe('')
    await end()
  })

  test('of work in work is one line, with the amounts of the inner', async () => {
    const terminal = terminalOutput()
    const io = { stdout: keptOutput().stream, stderr: terminal.stream, env: {} }
    const { promise, resolve } = Promise.withResolvers<void>()
    const inner = () =>
      withProgress(io, { what: 'Inner' }, (report) => {
        report({ done: 7, unit: 'lines' })
        return promise
      })
    const done = withProgress(io, { what: 'Outer' }, inner)
    vi.advanceTimersByTime(2000)
    expect(terminal.screen()).toEqual(['Outer: 7 lines, 4/s, 2 s', ''])
    resolve()
    await done
    expect(terminal.screen()).toEqual([''])
  })

  test('is removed where the work fails', async () => {
    const terminal = terminalOutput()
    const io = { stdout: keptOutput().stream, stderr: terminal.stream, env: {} }
    const { promise, reject } = Promise.withResolvers<void>()
    const done = withProgress(io, { what: 'Failing' }, () => promise)
    vi.advanceTimersByTime(2000)
    expect(terminal.screen()).toEqual(['Failing: 2 s', ''])
    reject(new Error('no'))
    await expect(done).rejects.toThrow('no')
    expect(terminal.screen()).toEqual([''])
  })
})
