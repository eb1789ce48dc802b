// proxy-header-bytes.ts: the header of the PROXY protocol, version 2, as a balancer sends it.

import { isIPv6 } from 'node:net'

/** Names `source` as the client; IPv6 addresses with `::` and an IPv4 address at the end included. */
export function proxyHeader(source: string, tlvs: Buffer = Buffer.alloc(0)): Buffer {
  const address = isIPv6(source) ? ipv6Bytes(source) : Buffer.from(source.split('.').map(Number))
  const ports = Buffer.from([0x30, 0x39, 0x07, 0x5b])
  const rest = Buffer.concat([address, Buffer.alloc(address.length), ports, tlvs])
  const head = Buffer.from('0d0a0d0a000d0a515549540a2100ffff', 'hex')
  head[13] = address.length === 4 ? 0x11 : 0x21
  head.writeUInt16BE(rest.length, 14)
  return Buffer.concat([head, rest])
}

/** A balancer checks whether it can connect. */
export const localHeader = Buffer.from('0d0a0d0a000d0a515549540a20000000', 'hex')

function ipv6Bytes(source: string): Buffer {
  const [head = '', tail = ''] = source.split('::')
  const [first, last] = [head, tail].map((part) => Buffer.concat(part.split(':').map(groupBytes)))
  const zeros = Buffer.alloc(16 - first!.length - last!.length)
  return Buffer.concat([first!, zeros, last!])
}

function groupBytes(group: string): Buffer {
  if (group.includes('.')) return Buffer.from(group.split('.').map(Number))
  return group === '' ? Buffer.alloc(0) : Buffer.from(group.padStart(4, '0'), 'hex')
}
