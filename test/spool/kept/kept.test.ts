import { expect, test } from 'vitest'
import { collect, ended, openSpoolWorld } from '../../support/open-spool.ts'
import { spoolWords, startSpool } from '../../support/spool-steps.ts'
import { keptNamed } from '../../support/spool-world.ts'
import { stepCases } from '../../support/step-cases.ts'

stepCases(import.meta.filename, startSpool, spoolWords)

test('messages that are kept are counted by device with the time of the oldest, for any device name', async () => {
  const before = await openSpoolWorld()
  const { clock } = before
  const startMs = clock.now()
  for (const [index, device] of ['a', 'b"', 'a', 'a\u0000', '\ud800', 'a', null].entries()) {
    before.spool.keepMessage(keptNamed(`m${index}`, { device }).message)
    expect(await ended(before.spool)).toBeNull()
    await clock.advance(1000)
  }
  const { spool } = await before.reopen()
  const devices = await collect(spool.keptDevices('quarantine:default'))
  expect(devices.sort((a, b) => a.oldestAt - b.oldestAt)).toEqual([
    { device: 'a', messages: 3, oldestAt: startMs },
    { device: 'b"', messages: 1, oldestAt: startMs + 1000 },
    { device: 'a\u0000', messages: 1, oldestAt: startMs + 3000 },
    { device: '\ud800', messages: 1, oldestAt: startMs + 4000 },
  ])
})
