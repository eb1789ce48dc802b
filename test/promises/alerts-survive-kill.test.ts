// kill -9 while an alert is on its way, and after it was taken: by a real daemon, again and again.

import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { AlertBody } from '../../src/alerts/alert-body.ts'
import { startHttpReceiver } from '../support/alert-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'

/** Longer than the condition takes to come, `wait` and two looks. */
const quietMs = 8000

/** To a broker that does not run: one condition from the start on. */
const bridge = 'bridges: [{ name: far, url: "mqtt://127.0.0.1:1", topics: ["a/+"], client_id: gw }]'

describe('an alert', () => {
  test('that a kill cuts is sent again under its id, and one that was taken is not', async () => {
    const receiver = await startHttpReceiver({ answer: () => undefined })
    const bodies = () => receiver.requests.map(({ body }) => JSON.parse(body) as AlertBody)
    const folder = await newFolder()
    const config = await writeDaemonConfig(folder, 'http://127.0.0.1:1')
    const text = await readFile(config, 'utf8')
    await writeFile(
      config,
      `${text.replace('ingest: {', `ingest: { ${bridge},`)}
alerts: { wait: 1s, receivers: [{ name: chat, type: webhook, url: "${receiver.url}", conditions: [MESSAGE_SOURCE_DISCONNECTED] }] }
`,
    )
    for (const tries of [1, 2]) {
      const daemon = await startSpawnedDaemon(config)
      await eventually(() => receiver.requests.length === tries)
      await daemon.kill()
    }
    receiver.answer = (response) => void response.end()
    const last = await startSpawnedDaemon(config)
    await eventually(() => receiver.requests.length === 3)
    await pause(1000)
    await last.kill()
    expect(new Set(bodies().map(({ id }) => id)).size).toBe(1)
    expect(bodies()[2]?.changes.map(({ kind, code }) => [kind, code])).toEqual([
      ['raised', 'MESSAGE_SOURCE_DISCONNECTED'],
    ])
    const again = await startSpawnedDaemon(config)
    await pause(quietMs)
    await again.kill()
    expect(receiver.requests).toHaveLength(3)
  }, 60_000)
})
