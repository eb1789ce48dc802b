import { describe, expect, test } from 'vitest'
import { closeCodeOf } from '../../../../../src/ingest/broker/listeners/websocket/close-codes.ts'
import { upgradeRefusal } from '../../../../../src/ingest/broker/listeners/websocket/upgrade-rules.ts'
import { rowsBeside } from '../../../../support/case-rows.ts'

type Reason = Parameters<typeof closeCodeOf>[0]

const rows = rowsBeside(import.meta.filename) as {
  paths: [url: string, refusal: string | null][]
  pages: [origin: string, refusal: string | null][]
  programs: [origin: string, host: string, refusal: string | null][]
  protocols: [offered: string | null, refusal: string | null][]
  close_codes: [reason: Reason, code: number][]
}

const options = {
  path: '/mqtt',
  origins: ['https://fleet.example.com'],
  hosts: new Set(['gateway.example.com', 'box']),
  isSecure: false,
}
const headers = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'mqtt',
}

/** Status and reason; null where it is accepted. */
function refusalOf(
  changed: Record<string, string | undefined>,
  { url = '/mqtt', ...more }: Partial<typeof options & { url: string }> = {},
) {
  const request = { method: 'GET', url, headers: { ...headers, ...changed } }
  const refusal = upgradeRefusal(request, { ...options, ...more })
  return refusal && `${refusal.status} ${refusal.reason}`
}

describe('a request for a WebSocket', () => {
  test.each(rows.paths)('to %s: %s', (url, refusal) => {
    expect(refusalOf({}, { url })).toBe(refusal)
  })

  test.each(rows.pages)('of the page %s: %s', (origin, refusal) => {
    expect(refusalOf({ origin })).toBe(refusal)
    expect(refusalOf({ origin }, { origins: ['*'] })).toBeNull()
    expect(refusalOf({ origin }, { origins: [] })).toBe('403 websocket_origin')
  })

  test.each(rows.programs)(
    'of a program that sends the Origin %s with the Host %s: %s',
    (origin, host, refusal) => {
      expect(refusalOf({ origin, host })).toBe(refusal)
    },
  )

  test('a name that a page can let resolve to this machine is accepted with TLS alone', () => {
    const [origin, host] = ['http://rebound.example:8083', 'rebound.example:8083']
    expect(refusalOf({ origin, host })).toBe('403 websocket_origin')
    expect(refusalOf({ origin, host }, { isSecure: true })).toBeNull()
    expect(refusalOf({ origin: 'https://evil.example', host }, { isSecure: true })).toBe(
      '403 websocket_origin',
    )
  })

  test.each(rows.protocols)('[MQTT-6.0.0-3] that offers %s: %s', (offered, refusal) => {
    expect(refusalOf({ 'sec-websocket-protocol': offered ?? undefined })).toBe(refusal)
  })
})

test.each(rows.close_codes)('the close frame for %s has the code %i', (reason, code) => {
  expect(closeCodeOf(reason)).toBe(code)
})
