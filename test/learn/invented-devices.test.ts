// A proposal may leave a value out; one that it sends must be right.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import type { Sent } from '../support/mapping-world.ts'
import { heardOf, learned } from './learned.ts'

type Counter = [path: string, unit: string]
type Case = {
  message: Record<string, unknown>
  without?: string[]
  time: boolean
  speed?: number
  heading?: number
  odometer?: Counter
  hours?: Counter
}

const at = Date.parse('2026-01-28T15:00:00Z')
const file = join(import.meta.dirname, 'invented-devices.cases.yaml')
const cases = parse(readFileSync(file, 'utf8')) as Case[]

/** The end of the note about a counter. */
function noteOf(type: string, [path, unit]: Counter): RegExp {
  const isGuessed = unit === '?'
  const end = isGuessed
    ? String.raw`unit: km \}\. The message does not say its unit`
    : String.raw`unit: ${unit} \}\.$`
  return new RegExp(`${type}, path: ${path}, ${end}`)
}

test.each(cases.map((one) => ({ ...one, shown: JSON.stringify(one.message) })))(
  'what is proposed for $shown is right',
  async ({ message, without = [], time, speed, heading, odometer, hours }) => {
    const whole = Object.entries({ lat: 48.1, lon: 2.2, ...message }).filter(
      ([key]) => !without.includes(key),
    )
    const messages = Array.from({ length: 6 }, (_, index) =>
      heardOf(Object.fromEntries(whole), {
        topic: `fleet/86463606000000${index % 3}/up`,
        arrivedAt: at + 5000 + index,
      }),
    )
    const { proposals } = await learned(messages)
    const sent = JSON.parse(proposals[0]?.fit.lastPayloads[0]?.json ?? '{}') as Partial<Sent>
    const { latitude, longitude, speed: sentSpeed, heading: sentHeading } = sent.gps ?? {}
    expect({ latitude, longitude }).toEqual({ latitude: 48.1, longitude: 2.2 })
    expect({ speed: sentSpeed, heading: sentHeading }).toEqual({ speed, heading })
    expect(sent.signalTimestamp === at).toBe(time)
    expect(sent.signals ?? []).toEqual([])
    const notes = (proposals[0]?.notes ?? []).filter((note) => / may be .*add/.test(note))
    const wanted = [
      ...(odometer ? [noteOf('OBD_LIFETIME_ODOMETER', odometer)] : []),
      ...(hours ? [noteOf('OBD_TOTAL_ENGINE_TIME', hours)] : []),
    ]
    expect(notes).toHaveLength(wanted.length)
    for (const one of wanted) expect(notes).toContainEqual(expect.stringMatching(one))
  },
)
