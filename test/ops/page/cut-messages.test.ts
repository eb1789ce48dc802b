// The last messages of a device, of which one was longer than what is kept of a message.

import { describe, expect, test } from 'vitest'
import { messagesText } from '../../../src/cli/devices-command/device-messages-text.ts'
import { markupOf } from '../../../src/ops/page/html.ts'
import { messagesSection } from '../../../src/ops/page/last-messages.ts'
import type { DeviceView } from '../../../src/ops/types.ts'

const now = '2026-11-28T09:00:00.000Z'
const message = (cutBytes: number) => ({
  at: now,
  topic: 'telemetry/v1/truck-7',
  qos: 1,
  dup: false,
  retain: false,
  cutBytes,
  became: 'payloads' as const,
  reason: null,
  payloads: [],
  message: '{',
})
const isNotMapped = /cut when it was kept, and is not mapped again/

describe.each([
  [
    'devices show',
    (cutBytes: number) => messagesText({ lastMessages: [message(cutBytes)], lastMessagesSkipped: 0 }, 80),
  ],
  [
    'the page',
    (cutBytes: number) =>
      markupOf(
        messagesSection({
          messages: [message(cutBytes)],
          skipped: 0,
          device: {} as DeviceView,
          now,
        }),
      ),
  ],
])('%s', (_name, shown) => {
  test('says of a message that was cut why it has no payloads', () => {
    expect(shown(100)).toMatch(isNotMapped)
  })

  test('does not say that of a message that the mapping in force makes nothing of', () => {
    expect(shown(0)).not.toMatch(isNotMapped)
  })
})
