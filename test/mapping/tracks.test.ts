import { readFile } from 'node:fs/promises'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Message } from '../../src/domain/message.ts'
import type { MappedPayload } from '../../src/domain/payload.ts'
import { replayMessages } from '../../src/mapping/cases/cases.ts'
import { openMapping } from '../../src/mapping/mapping.ts'
import type { Sent } from '../support/mapping-world.ts'
import { loadPresetMapping } from '../support/preset-mapping.ts'
import { degrees, formats, tracks, type Fix, type Format, type Track } from '../support/tracks.ts'

const deps = { env: {}, readText: (path: string) => readFile(path, 'utf8') }
const opened = await Promise.all(
  formats.map(async (format) => ({
    ...format,
    mapping: await openMapping(await loadPresetMapping(format.preset, deps), { clockOffsetMs: () => 0 }),
  })),
)
type Opened = (typeof opened)[number]

/** Everything that is not a payload fails the test. */
function payloadsOf({ mapping }: Opened, openings: readonly Message[], messages: readonly Message[]) {
  const mapper = mapping.open()
  const { payloads, refused, quarantined } = replayMessages(mapper, [...openings, ...messages])
  expect({ refused, quarantined, waiting: mapper.openParts() }).toEqual({
    refused: [],
    quarantined: [],
    waiting: 0,
  })
  return payloads
}

function messagesOf(format: Format, { device, fixes }: Track): Message[] {
  return fixes.flatMap((fix, index) => format.messages(device, fix, index))
}

function expected({ steps, deviceOf }: Format, device: string, fix: Fix) {
  return {
    device: deviceOf(device),
    time: Math.floor(fix.time / steps.time) * steps.time,
    latitude: degrees(fix.latitude),
    longitude: degrees(fix.longitude),
    speedUnits: 'KILOMETERS_PER_HOUR',
    heading: fix.heading,
  }
}

function read({ json, device }: MappedPayload) {
  const { gps, signalTimestamp: time, signals } = JSON.parse(json) as Sent
  const { speed, inMotion, ...rest } = gps ?? {}
  expect(signals).toBeUndefined()
  return { known: { device, time, ...rest }, speed: Number(speed), inMotion }
}

function idsOf(payloads: readonly MappedPayload[]): string[] {
  return [...new Set(payloads.map(({ payloadId }) => payloadId))].toSorted()
}

describe.each(opened)('a track through the preset $preset', (format) => {
  test('gives the simulated positions, fix by fix', () => {
    fc.assert(
      fc.property(tracks, (track) => {
        const payloads = payloadsOf(format, format.openings(track), messagesOf(format, track)).map(read)
        expect(payloads.map(({ known }) => known)).toEqual(
          track.fixes.map((fix) => expected(format, track.device, fix)),
        )
        for (const [index, { speed, inMotion }] of payloads.entries()) {
          const fix = track.fixes[index]
          // Knots are not whole, and are converted twice.
          expect(speed).toBeCloseTo(fix?.speed ?? Number.NaN, 9)
          // Between the two thresholds, motion derived from the speed does not change.
          const isPlain = fix !== undefined && (fix.speed > 10 || fix.speed === 0)
          expect(inMotion).toBe(isPlain ? fix.speed > 5 : inMotion)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('has the same payloadIds when messages are repeated or reordered', () => {
    fc.assert(
      fc.property(tracks, fc.infiniteStream(fc.nat({ max: 999 })), (track, chance) => {
        const before = idsOf(payloadsOf(format, format.openings(track), messagesOf(format, track)))
        expect(before).toHaveLength(track.fixes.length)
        const again = shuffled(track, chance).flatMap((fix, at) => format.messages(track.device, fix, at))
        expect(idsOf(payloadsOf(format, format.openings(track), again))).toEqual(before)
      }),
      { numRuns: 50 },
    )
  })
})

/** Every fix at least once, some twice or three times, in any order. */
function shuffled({ fixes }: Track, chance: fc.Stream<number>): Fix[] {
  const next = () => chance.next().value ?? 0
  return fixes
    .flatMap((fix) => Array.from({ length: 1 + (next() % 3) }, () => ({ fix, place: next() })))
    .toSorted((a, b) => a.place - b.place)
    .map(({ fix }) => fix)
}
