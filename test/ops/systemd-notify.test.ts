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

describe('systemd is notified', () => {
  test('when the daemon is ready, with a status, and when it stops', async () => {
    await using world = await systemd()
    const notify = createNotify({ clock: handClock(), env: world.env })
    notify.ready('Ready')
    await world.linesReach(1)
    notify.stopping()
    await notify.close()
    expect(await world.lines()).toEqual(['READY=1 STATUS=Ready', 'STOPPING=1 STATUS=Stopping'])
  })

  test('of a start that goes on, at most every ten seconds, so that it is not ended by its time limit', async () => {
    await using world = await systemd()
    const clock = handClock()
    const notify = createNotify({ clock, env: world.env })
    notify.starting('checking the spool: 1 of 20 GiB')
    await world.linesReach(1)
    clock.move(9_999)
    notify.starting('checking the spool: 2 of 20 GiB')
    clock.move(1)
    notify.starting('checking the spool: 3 of 20 GiB')
    await world.linesReach(2)
    await notify.close()
    expect(await world.lines()).toEqual([
      'EXTEND_TIMEOUT_USEC=60000000 STATUS=checking the spool: 1 of 20 GiB',
      'EXTEND_TIMEOUT_USEC=60000000 STATUS=checking the spool: 3 of 20 GiB',
    ])
  })

  test('at half of the watchdog time while the event loop runs', async () => {
    await using world = await systemd()
    const clock = handClock()
    const notify = createNotify({ clock, env: { ...world.env, WATCHDOG_USEC: '60000000' } })
    clock.move(29_999)
    expect(await world.lines()).toEqual([])
    clock.move(1)
    await world.linesReach(1)
    clock.move(30_000)
    await world.linesReach(2)
    await notify.close()
    clock.move(100_000)
    expect(await world.lines()).toEqual(['WATCHDOG=1', 'WATCHDOG=1'])
  })

  test('not for a watchdog of another process', async () => {
    await using world = await systemd()
    const clock = handClock()
    const notify = createNotify({
      clock,
      env: { ...world.env, WATCHDOG_USEC: '60000000', WATCHDOG_PID: '1' },
    })
    clock.move(600_000)
    await notify.close()
    expect(await world.lines()).toEqual([])
  })

  test('not at all without NOTIFY_SOCKET', async () => {
    await using world = await systemd()
    const { NOTIFY_SOCKET: _socket, ...env } = world.env
    const notify = createNotify({ clock: handClock(), env })
    notify.ready('Ready')
    notify.stopping()
    await notify.close()
    expect(await world.lines()).toEqual([])
  })

  test('by one child at a time: later notifications are joined to one, with the latest status', async () => {
    await using world = await systemd('echo "$*" >> "$CALLS"; sleep 0.2')
    const notify = createNotify({ clock: handClock(), env: world.env })
    for (let n = 0; n < 100; n += 1) notify.status(`Status ${n}`)
    notify.ready('Ready\nWATCHDOG=trick')
    await notify.close()
    expect(await world.lines()).toEqual(['STATUS=Status 0', 'STATUS=Ready WATCHDOG=trick READY=1'])
  })

  test('by a child that is killed when it hangs', async () => {
    await using world = await systemd('echo "$*" >> "$CALLS"; exec sleep 1000')
    const clock = handClock()
    const notify = createNotify({ clock, env: world.env })
    notify.ready('Ready')
    await world.linesReach(1)
    clock.move(5000)
    await notify.close()
    expect(await world.lines()).toHaveLength(1)
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
