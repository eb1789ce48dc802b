import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { watch } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createNotify } from '../../src/ops/systemd-notify.ts'
import { handClock } from '../support/ops-world.ts'

/** A `systemd-notify` that writes down how it was called, one line a call. */
async function systemd(script = 'echo "$*" >> "$CALLS"') {
  const folder = await mkdtemp(join(tmpdir(), 'notify-'))
  const calls = join(folder, 'calls')
  await writeFile(join(folder, 'systemd-notify'), `#!/bin/sh\n${script}\n`)
  await chmod(join(folder, 'systemd-notify'), 0o755)
  await writeFile(calls, '')
  const lines = async () => (await readFile(calls, 'utf8')).split('\n').filter((line) => line !== '')
  const linesReach = async (count: number) => {
    const watcher = watch(folder)
    try {
      for (;;) {
        const changed = new Promise((resolve) => watcher.once('change', resolve))
        if ((await lines()).length >= count) return
        await changed
      }
    } finally {
      watcher.close()
    }
  }
  return {
    env: { NOTIFY_SOCKET: '/run/none', CALLS: calls, PATH: `${folder}:${process.env['PATH'] ?? ''}` },
    lines,
    linesReach,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

/** Notifies as a daemon that systemd has started with these variables. */
async function world(env: NodeJS.ProcessEnv = {}, script?: string) {
  const system = await systemd(script)
  const clock = handClock()
  return { ...system, clock, notify: createNotify({ clock, env: { ...system.env, ...env } }) }
}

describe('systemd is notified', () => {
  test('when the daemon is ready, with a status, and when it stops', async () => {
    await using of = await world()
    const { notify } = of
    notify.ready('Ready')
    await of.linesReach(1)
    notify.stopping()
    await notify.close()
    expect(await of.lines()).toEqual(['READY=1 STATUS=Ready', 'STOPPING=1 STATUS=Stopping'])
  })

  test('of a start that goes on, at most every ten seconds, so that it is not ended by its time limit', async () => {
    await using of = await world()
    const { clock, notify } = of
    notify.starting('checking the spool: 1 of 20 GiB')
    await of.linesReach(1)
    clock.move(9_999)
    notify.starting('checking the spool: 2 of 20 GiB')
    clock.move(1)
    notify.starting('checking the spool: 3 of 20 GiB')
    await of.linesReach(2)
    await notify.close()
    expect(await of.lines()).toEqual([
      'EXTEND_TIMEOUT_USEC=60000000 STATUS=checking the spool: 1 of 20 GiB',
      'EXTEND_TIMEOUT_USEC=60000000 STATUS=checking the spool: 3 of 20 GiB',
    ])
  })

  test('at half of the watchdog time while the event loop runs', async () => {
    await using of = await world({ WATCHDOG_USEC: '60000000' })
    const { clock, notify } = of
    clock.move(29_999)
    expect(await of.lines()).toEqual([])
    clock.move(1)
    await of.linesReach(1)
    clock.move(30_000)
    await of.linesReach(2)
    await notify.close()
    clock.move(100_000)
    expect(await of.lines()).toEqual(['WATCHDOG=1', 'WATCHDOG=1'])
  })

  test('not for a watchdog of another process', async () => {
    await using of = await world({ WATCHDOG_USEC: '60000000', WATCHDOG_PID: '1' })
    const { clock, notify } = of
    clock.move(600_000)
    await notify.close()
    expect(await of.lines()).toEqual([])
  })

  test('not at all without NOTIFY_SOCKET', async () => {
    await using of = await world({ NOTIFY_SOCKET: undefined })
    const { notify } = of
    notify.ready('Ready')
    notify.stopping()
    await notify.close()
    expect(await of.lines()).toEqual([])
  })

  test('by one child at a time: later notifications are joined to one, with the latest status', async () => {
    await using of = await world({}, 'echo "$*" >> "$CALLS"; sleep 0.2')
    const { notify } = of
    for (let n = 0; n < 100; n += 1) notify.status(`Status ${n}`)
    notify.ready('Ready\nWATCHDOG=trick')
    await notify.close()
    expect(await of.lines()).toEqual(['STATUS=Status 0', 'STATUS=Ready WATCHDOG=trick READY=1'])
  })

  test('by a child that is killed when it hangs', async () => {
    await using of = await world({}, 'echo "$*" >> "$CALLS"; exec sleep 1000')
    const { clock, notify } = of
    notify.ready('Ready')
    await of.linesReach(1)
    clock.move(5000)
    await notify.close()
    expect(await of.lines()).toHaveLength(1)
  })

  test('without effect on the daemon if systemd-notify is missing', async () => {
    const notify = createNotify({
      clock: handClock(),
      env: { NOTIFY_SOCKET: '/run/none', PATH: '/nonexistent' },
    })
    notify.ready('Ready')
    await expect(notify.close()).resolves.toBeUndefined()
  })
})
