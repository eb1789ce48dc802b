import { expect, test } from 'vitest'
import { createBackfillRule } from '../../src/app/backfill-rule.ts'
import { deliveryOptions, deliverySchema } from '../../src/delivery/config.ts'
import type { ProviderName } from '../../src/domain/ids.ts'
import { createFakeClock } from '../support/fake-clock.ts'

const provider = 'default' as ProviderName
const hourMs = 3_600_000

test('a payload is late by the corrected clock, and undecided while our time is unknown', () => {
  const clock = createFakeClock()
  const options = deliveryOptions(
    deliverySchema.parse({ base_url: 'http://127.0.0.1:1', backfill: { after: '10m' } }),
  )
  let offsetMs: number | null = null
  const { isLate } = createBackfillRule({ clock, offsetMs: () => offsetMs }, options)
  const old = clock.now() - hourMs
  expect(isLate(provider, old)).toBeNull()
  offsetMs = 0
  expect(isLate(provider, old)).toBe(true)
  offsetMs = -hourMs
  expect(isLate(provider, old)).toBe(false)
  expect(isLate(provider, old - hourMs)).toBe(true)
})
