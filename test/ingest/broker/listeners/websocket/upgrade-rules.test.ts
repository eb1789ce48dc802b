import { describe, expect, test } from 'vitest'
import { closeCodeOf } from '../../../../../src/ingest/broker/listeners/websocket/close-codes.ts'
import { upgradeRefusal } from '../../../../../src/ingest/broker/listeners/websocket/upgrade-rules.ts'

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
const request = { method: 'GET', url: '/mqtt', headers }

function refusalOf(changed: Record<string, string | undefined>, origins = options.origins) {
  const refusal = upgradeRefusal({ ...request, headers: { ...headers, ...changed } }, { ...options, origins })
  return refusal && `${refusal.status} ${refusal.reason}`
}

describe('a request for a WebSocket', () => {
  test.each([
    ['/mqtt?token=x', null],
    ['/', '404 websocket_path'],
    ['/mqtt/', '404 websocket_path'],
    ['/MQTT', '404 websocket_path'],
    ['/mqttx', '404 websocket_path'],
  ])('to %s: %s', (url, expected) => {
    const refusal = upgradeRefusal({ ...request, url }, options)
    expect(refusal && `${refusal.status} ${refusal.reason}`).toBe(expected)
  })

  test.each([
    ['https://fleet.example.com', null],
    ['HTTPS://Fleet.Example.com', null],
    ['http://fleet.example.com', '403 websocket_origin'],
    ['https://fleet.example.com:8443', '403 websocket_origin'],
    ['https://fleet.example.com.evil.example', '403 websocket_origin'],
    ['null', '403 websocket_origin'],
    ['', '403 websocket_origin'],
  ])('of the page %s: %s', (origin, expected) => {
    expect(refusalOf({ origin })).toBe(expected)
    expect(refusalOf({ origin }, ['*'])).toBeNull()
    expect(refusalOf({ origin }, [])).toBe('403 websocket_origin')
  })

  test.each([
    ['http://192.0.2.7:8083', '192.0.2.7:8083', null],
    ['http://[2001:db8::7]:8083', '[2001:db8::7]:8083', null],
    ['http://localhost:8083', 'localhost:8083', null],
    ['http://box:8083', 'BOX:8083', null],
    ['https://gateway.example.com', 'gateway.example.com:443', null],
    ['http://gateway.example.com', 'gateway.example.com:8083', '403 websocket_origin'],
    ['http://192.0.2.7:3000', '192.0.2.7:8083', '403 websocket_origin'],
    ['http://192.0.2.8:8083', '192.0.2.7:8083', '403 websocket_origin'],
    ['http://evil.example:8083', '192.0.2.7:8083', '403 websocket_origin'],
    ['http://192.0.2.7:8083@evil.example', '192.0.2.7:8083', '403 websocket_origin'],
    ['null', '192.0.2.7:8083', '403 websocket_origin'],
  ])('of a program that sends the Origin %s with the Host %s: %s', (origin, host, expected) => {
    expect(refusalOf({ origin, host })).toBe(expected)
  })

  test('a name that a page can let resolve to this machine is accepted with TLS alone', () => {
    const [origin, host] = ['http://rebound.example:8083', 'rebound.example:8083']
    expect(refusalOf({ origin, host })).toBe('403 websocket_origin')
    const asked = { ...request, headers: { ...headers, origin, host } }
    expect(upgradeRefusal(asked, { ...options, isSecure: true })).toBeNull()
    const other = { ...request, headers: { ...headers, origin: 'https://evil.example', host } }
    expect(upgradeRefusal(other, { ...options, isSecure: true })?.reason).toBe('websocket_origin')
  })

  test.each([
    ['mqtt', null],
    ['foo, mqtt', null],
    ['mqttv3.1,mqtt ', null],
    [undefined, '400 websocket_protocol_missing'],
    ['mqttv3.1', '400 websocket_protocol_missing'],
    ['MQTT', '400 websocket_protocol_missing'],
    ['mqtt5', '400 websocket_protocol_missing'],
  ])('[MQTT-6.0.0-3] that offers %s: %s', (offered, expected) => {
    expect(refusalOf({ 'sec-websocket-protocol': offered })).toBe(expected)
  })
})

test.each([
  [null, 1000],
  ['gateway_stopping', 1001],
  ['websocket_protocol', 1002],
  ['websocket_text', 1003],
  ['keepalive_timeout', 1008],
  ['packet_too_large', 1009],
  ['spool_write_failed', 1011],
] as const)('the close frame for %s has the code %i', (reason, code) => {
  expect(closeCodeOf(reason)).toBe(code)
})
