import { describe, expect, test } from 'vitest'
import type { EventOf } from '../../../src/domain/event.ts'
import { conditionCatalogue } from '../../../src/ops/conditions/condition-catalogue.ts'
import { presentOf } from '../../../src/ops/conditions/causes.ts'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { eventTable } from '../../../src/domain/event.ts'
import { lineOf } from '../../../src/ops/logging/log-line.ts'
import { createLog } from '../../../src/ops/logging/logging.ts'
import { eventSamples, stateSamples } from '../../support/event-samples.ts'
import { handClock, keptOutput } from '../../support/ops-world.ts'

const samples = Object.values(eventSamples)
const unreadable = /undefined|NaN|\[object|\.\.|\b1 (payload|message|device|source|letter|receipt|part|time)s/

describe('every event', () => {
  test('has a sample, and each sample is one', () => {
    expect(Object.keys(eventSamples).toSorted()).toEqual(Object.keys(eventTable).toSorted())
  })

  test.each(samples)('$kind reads as a sentence, in the log and in its conditions', (event) => {
    const conditions = createConditions({ clock: handClock() })
    conditions.apply(event)
    const texts = [lineOf(event).text, ...conditions.open().flatMap(({ what, why, act }) => [what, why, act])]
    for (const text of texts) {
      expect(text).toMatch(/^[A-Z0-9].*[."]$/)
      expect(text).not.toMatch(unreadable)
    }
  })

  test.each(samples)('$kind logs only flat fields', (event) => {
    for (const value of Object.values(lineOf(event).fields).flat())
      expect(['string', 'number', 'boolean']).toContain(value === null ? 'string' : typeof value)
  })

  test('raises the conditions that its entry names, and there is no condition that nothing raises', () => {
    const conditions = createConditions({ clock: handClock() })
    const seen = new Set<string>()
    const proxied = { ...eventSamples.listener_refused, reason: 'proxy_untrusted' }
    const otherPath = { ...eventSamples.listener_refused, reason: 'websocket_path', found: '/' }
    const flooding = { ...eventSamples.client_dropped, reason: 'too_many_control_packets' }
    const partial = { ...eventSamples.client_dropped, reason: 'partial_packets_full' }
    const limits = [proxied, otherPath, flooding, partial]
    for (const event of [...samples, ...limits]) {
      conditions.apply(event)
      for (const { code } of conditions.open()) seen.add(code)
    }
    // These follow states and numbers: conditions.test.ts, fill-conditions.test.ts.
    const counted = ['DEAD_LETTERS', 'DEAD_LETTERS_WAITING', 'SPOOL_FILLING', 'DISK_FILLING', 'STORE_FILLING']
    const others = new Set([...counted, ...Object.keys(stateSamples)])
    const byEvents = Object.keys(conditionCatalogue).filter((code) => !others.has(code))
    expect([...seen].sort()).toEqual(byEvents.sort())
    const named = Object.values(eventTable).flatMap(({ raises = {} }) => Object.keys(raises))
    expect([...new Set(named)].sort()).toEqual(byEvents.sort())
  })
})

describe('every state', () => {
  test('has a sample, and texts in the catalogue', () => {
    const withTexts = Object.entries(conditionCatalogue).filter(([, spec]) => 'cause' in spec)
    expect(Object.keys(stateSamples).toSorted()).toEqual(withTexts.map(([code]) => code).toSorted())
  })

  test.each(Object.values(stateSamples))('$code reads as sentences', (state) => {
    const conditions = createConditions({ clock: handClock() })
    conditions.look([presentOf(state)])
    const [condition] = conditions.open()
    for (const text of [condition?.what, condition?.why, condition?.act]) {
      expect(text).toMatch(/^[A-Z0-9`].*[.")]$/)
      expect(text).not.toMatch(unreadable)
    }
  })
})

describe('an event below the log level', () => {
  test('builds no sentence', () => {
    const output = keptOutput()
    const log = createLog({ clock: handClock(), stdout: output.stream, env: {} }, { level: 'info' })
    const sealed: EventOf<'batch_sealed'> = {
      ...eventSamples.batch_sealed,
      get payloads(): number {
        throw new Error('read')
      },
    }
    expect(() => log.write(sealed)).not.toThrow()
    expect(output.lines()).toEqual([])
  })
})
