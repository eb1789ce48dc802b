// A recording of real buses, replayed over MQTT into the gateway with the example config. The recording is
// third-party data: it is read where TELEMETRY_TEST_DATA names its folder, and is no part of the project.

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startPipeline } from '../support/pipeline-world.ts'

const folder = process.env['TELEMETRY_TEST_DATA']
const recording = folder === undefined ? '' : join(folder, 'data/hsl-hfp-replay.ndjson')
const example = resolve(import.meta.dirname, '../../config/examples/hsl.yaml')

type Row = { topic: string; payload: string }
type Fix = { tst: string; lat: number | null; long: number | null; spd: number | null; hdg: number | null }

function fixIn(row: Row): Fix {
  const [fix] = Object.values(JSON.parse(row.payload) as Record<string, Fix>)
  if (fix === undefined) throw new Error(`no event in ${row.payload}`)
  return fix
}

/** What the service must have got for a message, as text, so that equal ones are one. */
function expected(row: Row): string {
  const { tst, lat, long, spd, hdg } = fixIn(row)
  const levels = row.topic.split('/')
  const device = `${levels[7]}/${levels[8]}`
  const speed = spd === null || spd < 0 ? null : Number((spd * 3.6).toFixed(6))
  return JSON.stringify([device, Date.parse(tst), lat, long, speed, hdg === 360 ? 0 : hdg])
}

function received(payload: Record<string, unknown>): string {
  const { deviceIdentifier, signalTimestamp, gps } = payload as {
    deviceIdentifier: { id: string }
    signalTimestamp: number
    gps: { latitude: number; longitude: number; speed?: number; speedUnits?: string; heading?: number }
  }
  if (gps.speed !== undefined && gps.speedUnits !== 'KILOMETERS_PER_HOUR')
    throw new Error('a speed without its unit')
  const speed = gps.speed === undefined ? null : Number(gps.speed.toFixed(6))
  const { latitude, longitude, heading } = gps
  return JSON.stringify([deviceIdentifier.id, signalTimestamp, latitude, longitude, speed, heading ?? null])
}

describe('a recording of buses', () => {
  const message = 'TELEMETRY_TEST_DATA names no folder with the recording'
  test.skipIf(!existsSync(recording))(
    `arrives with every position, and counts every message without one (skipped where ${message})`,
    { timeout: 90_000 },
    async () => {
      const rows = (await readFile(recording, 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Row)
      expect(rows).toHaveLength(1990)
      const text = await readFile(example, 'utf8')
      const pipeline = await startPipeline({
        sandbox: { receivedMax: 5000 },
        config: (baseUrl) =>
          text
            .replace('mqtt://127.0.0.1:1883', 'mqtt://127.0.0.1:0')
            .replace('http://127.0.0.1:8081', baseUrl)
            .replace('127.0.0.1:8080', '127.0.0.1:0')
            // It was recorded years ago.
            .concat('\nclocks: { past_max: 36500d }\n'),
      })
      const device = await pipeline.device('replay')
      for (let index = 0; index < rows.length; index += 200) {
        const some = rows.slice(index, index + 200)
        some.forEach(({ topic, payload }, at) =>
          device.publish({ topic, payload, messageId: index + at + 1 }),
        )
        await device.acked(index + some.length)
      }
      const positioned = rows.filter((row) => fixIn(row).lat !== null)
      const distinct = new Set(positioned.map(expected))
      await pipeline.until(() => pipeline.status().totals.delivered >= distinct.size)
      const { totals, reasons } = pipeline.status()
      expect(totals).toMatchObject({
        messages: rows.length,
        acked: rows.length,
        payloads: distinct.size,
        delivered: distinct.size,
        ignored: rows.length - positioned.length,
        // Some events tell the same vehicle, time and place as another one.
        duplicates: positioned.length - distinct.size,
        dead: 0,
        dropped: 0,
      })
      expect(reasons).toEqual([
        {
          kind: 'ignored',
          source: expect.any(String) as string,
          reason: expect.stringContaining('lat != null') as string,
          messages: rows.length - positioned.length,
        },
      ])
      const got = pipeline.sandbox.received({ limit: 5000 }).map(({ payload }) => received(payload))
      expect(got.toSorted()).toEqual([...distinct].toSorted())
    },
  )
})
