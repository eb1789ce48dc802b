// The alerts as a whole, without a gateway: what a fault of the state does, and where the state cannot be kept.

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAlerts, type AlertsDeps } from '../../src/alerts/alerts.ts'
import type { Situation } from '../../src/alerts/types.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { alertsConfig, condition, startHttpReceiver } from '../support/alert-world.ts'
import { eventually } from '../support/eventually.ts'
import { createFastClock } from '../support/fast-clock.ts'
import { newFolder } from '../support/folders.ts'

const open: Situation = {
  verdict: 'degraded',
  sentence: 'A sentence.',
  isReady: true,
  isComplete: true,
  conditions: [condition('DEAD_LETTERS')],
  endOf: () => null,
}

async function start(
  situation: () => Situation,
  spoolPath: string,
  receiver?: Awaited<ReturnType<typeof startHttpReceiver>>,
  path = '',
) {
  receiver ??= await startHttpReceiver()
  const written = {
    wait: '0s',
    receivers: [{ type: 'webhook', name: 'chat', url: `${receiver.url}${path}` }],
  }
  const events: GatewayEvent[] = []
  let ids = 0
  const deps: AlertsDeps = {
    clock: createFastClock(20),
    random: Math.random,
    newId: () => `id-${(ids += 1)}`,
    emit: (event) => void events.push(event),
    env: {},
    version: '1',
    situation,
    clockOffsetMs: () => null,
  }
  const alerts = createAlerts(deps, { alerts: alertsConfig(written), proxy: { from: 'none' } }, spoolPath)
  await alerts.start()
  onTestFinished(() => alerts.stop())
  return { alerts, events, receiver }
}

describe('alerts', () => {
  test('go on after a fault of the state, which is an event and a condition', async () => {
    let isFaulty = true
    const { alerts, events, receiver } = await start(
      () => {
        if (isFaulty) throw new Error('a stage has a fault')
        return open
      },
      await newFolder(),
    )
    await eventually(() => events.length >= 3)
    expect(events[2]).toMatchObject({ kind: 'alert_failed', receiver: '(all)', failures: 3 })
    expect(alerts.stage.states()).toMatchObject([{ code: 'ALERTS_FAILING', receiver: '(all)' }])
    isFaulty = false
    await eventually(() => receiver.requests.length === 1)
    expect(alerts.stage.states()).toEqual([])
  })

  test('tell another address on the same host what is open, also after a restart', async () => {
    const spoolPath = await newFolder()
    const first = await start(() => open, spoolPath, await startHttpReceiver(), '/room-1')
    await eventually(() => first.receiver.requests.length === 1)
    await first.alerts.stop()
    const second = await start(() => open, spoolPath, first.receiver, '/room-2')
    await eventually(() => second.receiver.requests.length === 2)
    expect(second.receiver.requests[1]?.body).toContain('RAISED')
    expect(await readFile(join(spoolPath, 'alerts.json'), 'utf8')).not.toContain('room')
  })

  test.each([
    ['does not exist', async (folder: string) => join(folder, 'none')],
    [
      'has a directory in place of the file',
      async (folder: string) => {
        await mkdir(join(folder, 'alerts.json'))
        return folder
      },
    ],
    [
      'has a file with other content',
      async (folder: string) => {
        await writeFile(join(folder, 'alerts.json'), '{"version":1,"receivers":{"chat":{"reported":7}}}')
        return folder
      },
    ],
  ])('are sent where the directory of the state %s', async (_, prepare) => {
    const { receiver } = await start(() => open, await prepare(await newFolder()))
    await eventually(() => receiver.requests.length === 1)
    expect(receiver.requests[0]?.body).toContain('DEAD_LETTERS')
  })
})
