// Kills the real daemon while a device counts: the differences that the service received must add up to what the
// device counted, message by message, and start anew after `devices forget`.

import { request } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { openKilledWorld } from '../support/driver/killed-world.ts'
import { createResendingDevice } from '../support/driver/resending-device.ts'
import type { Point } from './kill-points.ts'

const first = Date.UTC(2026, 0, 1)

/** No two differences are equal. */
const countOf = (n: number) => 1000 + (n * (n + 1)) / 2

const kills: { point: Point; after: number; powerCut?: boolean }[] = [
  { point: 'after-write-before-ack', after: 2 },
  { point: 'during-write', after: 3, powerCut: true },
  { point: 'after-answer', after: 1 },
  { point: 'after-write-before-ack', after: 1, powerCut: true },
  { point: 'during-write', after: 1 },
]

type Received = { n: number; payloadId: string; distance: number | null }

async function openWorld() {
  const world = await openKilledWorld(
    (url) => `ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { anonymous: true } } }
sources:
  - name: counts
    topic: counts/{device}
    previous: { for: 365d }
    map:
      time: { path: ts, format: ms }
      signals:
        - { type: COUNT, path: count, value_unit: PULSES }
        - { type: COUNT_SINCE_LAST, path: count, minus: $previous.count, value_unit: PULSES }
clocks: { trust_local: true }
delivery: { base_url: "${url}", max_in_flight: 1, batch: { max_payloads: 10, linger: 5ms } }`,
  )
  return {
    ...world,
    forget: (device: string) => forget(join(world.spoolPath, 'control.sock'), device),
    received: (): Received[] =>
      world
        .received()
        .map(({ payload }) => receivedOf(payload as Sent))
        .toSorted((a, b) => a.n - b.n),
  }
}

type Sent = { payloadId: string; signalTimestamp: number; signals: { type: string; value: string }[] }

function receivedOf({ payloadId, signalTimestamp, signals }: Sent): Received {
  const own = signals.find(({ type }) => type === 'COUNT_SINCE_LAST')
  return {
    n: (signalTimestamp - first) / 60_000,
    payloadId,
    distance: own === undefined ? null : Number(own.value),
  }
}

const counterUnit = () =>
  createResendingDevice('unit-1', (n) => ({
    topic: 'counts/unit-1',
    payload: JSON.stringify({ ts: first + n * 60_000, count: countOf(n) }),
  }))

function forget(socketPath: string, device: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request({ socketPath, method: 'POST', path: `/control/devices/forget?device=${device}` }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}

test('killed 5 times, twice by a power cut, the daemon sends each difference once', async () => {
  const world = await openWorld()
  const unit = counterUnit()
  for (const { point, after, powerCut = false } of kills) {
    await using daemon = world.start({ point, after })
    // Connections of their own, so that there are several writes.
    const port = (await daemon.ready)?.mqttPort ?? 0
    for (let round = 0; round < 4 && daemon.running; round += 1) await unit.publish(port, 4)
    expect(await daemon.ended, `${point}:\n${daemon.log()}`).toBe('SIGKILL')
    if (powerCut) await world.cutPower()
  }
  await using daemon = world.start()
  const port = (await daemon.ready)?.mqttPort ?? 0
  await unit.publish(port, 4)
  expect(unit.unacked).toEqual([])
  await eventually(() => world.received().length >= unit.published)
  const before = world.received()
  expect(new Set(before.map(({ payloadId }) => payloadId)).size).toBe(unit.published)
  // The count of message n is larger than that of n - 1 by n.
  expect(before.map(({ n, distance }) => [n, distance])).toEqual(
    before.map((_, n) => [n, n === 0 ? null : n]),
  )
  expect(await world.forget('unit-1')).toBe(200)
  await unit.publish(port, 2)
  await eventually(() => world.received().length >= unit.published)
  const [anew, next] = world.received().slice(-2)
  expect([anew?.distance, next?.distance]).toEqual([null, unit.published - 1])
  expect(await daemon.stop()).toBe('exit 0')
}, 180_000)
