import { describe, expect, test } from 'vitest'
import {
  clientAddressIn,
  clientAddressOf,
  proxyHeadOf,
} from '../../../../src/ingest/broker/listeners/proxy-header.ts'
import { proxyHeader } from '../../../support/proxy-header-bytes.ts'

function read(bytes: Buffer): unknown {
  const head = proxyHeadOf(bytes.subarray(0, 16))
  return typeof head === 'string' ? head : clientAddressOf(head, bytes.subarray(16, 16 + head.restBytes))
}

/** A header with these bytes in place of its own from byte 12 on. */
function changed(...bytes: number[]): Buffer {
  const header = proxyHeader('192.0.2.7')
  header.set(bytes, 12)
  return header
}

describe('a PROXY protocol header', () => {
  test.each([
    ['IPv4', proxyHeader('192.0.2.7'), '192.0.2.7'],
    ['IPv6', proxyHeader('2001:db8::7'), '2001:db8::7'],
    ['IPv4 in IPv6', proxyHeader('::ffff:192.0.2.7'), '::ffff:192.0.2.7'],
    ['IPv4 with TLVs', proxyHeader('192.0.2.7', Buffer.alloc(300, 4)), '192.0.2.7'],
    ['LOCAL', changed(0x20, 0x00, 0, 0), null],
    ['LOCAL with an address', changed(0x20, 0x11), null],
    ['an unknown client', changed(0x21, 0x00, 0, 0), null],
    ['a UNIX socket', changed(0x21, 0x31, 0, 216), null],
  ])('%s', (_what, bytes, address) => {
    expect(read(bytes)).toBe(address)
  })

  test.each([
    ['the text of version 1', Buffer.from('PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n'), 'line'],
    ['a CONNECT', Buffer.from('\x10\x0f\0\x04MQTT\x04\x02\0\0\0\x03abc'), 'missing'],
    ['version 1 in binary', changed(0x11), 'invalid'],
    ['an unknown command', changed(0x22), 'invalid'],
    ['datagrams', changed(0x21, 0x12), 'invalid'],
    ['an unknown family', changed(0x21, 0x41), 'invalid'],
    ['a rest that is too short', changed(0x21, 0x11, 0, 11), 'invalid'],
    ['a rest that is too short for IPv6', changed(0x21, 0x21, 0, 35), 'invalid'],
    ['a rest beyond the bound', changed(0x21, 0x11, 8, 1), 'invalid'],
  ])('is refused: %s', (_what, bytes, problem) => {
    expect(read(bytes)).toBe(problem)
  })
})

describe('a line of version 1', () => {
  test.each([
    ['PROXY TCP4 192.0.2.7 192.0.2.8 1 65535', '192.0.2.7'],
    ['PROXY TCP6 2001:DB8:0::7 ::1 1 2', '2001:db8::7'],
    ['PROXY UNKNOWN', null],
    ['PROXY UNKNOWN ffff::1 anything', null],
    ['PROXY UNKNOWNS', 'invalid'],
    ['PROXY TCP4 2001:db8::7 ::1 1 2', 'invalid'],
    ['PROXY TCP6 192.0.2.7 192.0.2.8 1 2', 'invalid'],
    ['PROXY TCP4 192.0.2.7 192.0.2.8 1 65536', 'invalid'],
    ['PROXY TCP4 192.0.2.7 192.0.2.8 1', 'invalid'],
    ['PROXY TCP4 192.0.2.7  192.0.2.8 1 2', 'invalid'],
    ['PROXY TCP4 gateway 192.0.2.8 1 2', 'invalid'],
    ['PROXY UDP4 192.0.2.7 192.0.2.8 1 2', 'invalid'],
  ])('%s: %s', (line, expected) => {
    expect(clientAddressIn(line)).toEqual(expected === 'invalid' ? expected : { address: expected })
  })
})
