// proxy-header.ts: the header of the PROXY protocol by which a balancer names the client of a connection
// (https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt, sections 2.1 and 2.2). Pure: knows no socket.
//
// Version 1, which nginx sends, is one line of at most 107 bytes:
//
//   PROXY TCP4 192.0.2.7 192.0.2.8 56324 1883\r\n         TCP6 with IPv6; UNKNOWN, and anything behind it
//
// Version 2:
//
//   12 bytes   signature
//    1 byte    version (2) and command: 0 LOCAL, the balancer's own check; 1 PROXY
//    1 byte    family (0 unspecified, 1 IPv4, 2 IPv6, 3 UNIX) and transport (1 stream, 2 datagram)
//    2 bytes   length of the rest
//    rest      source address, destination address, source port, destination port, then TLVs
//
// The TLVs (the name of a TLS client among them) are not used. npm has parsers of whole headers; none reads
// from a socket with a bound and leaves the rest to TLS, which is most of the work.

import { isIP, SocketAddress } from 'node:net'

export const headBytes = 16
/** The rest. Addresses and ports have at most 216 bytes; balancers add TLVs of some hundred. */
export const restBytesMax = 2048

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const addressBytesOf = { ipv4: 4, ipv6: 16 } as const

export type ProxyHead = { isLocal: boolean; family: 'ipv4' | 'ipv6' | null; restBytes: number }

/** With its line end. The shortest one has 15 bytes. */
export const lineBytesMax = 107

/** The address of the client in a line of version 1, without its line end; null where it names none. */
export function clientAddressIn(line: string): { address: string | null } | 'invalid' {
  if (/^PROXY UNKNOWN($| )/.test(line)) return { address: null }
  const [, version, source = '', target = '', ...ports] =
    /^PROXY TCP([46]) ([\d.:A-Fa-f]+) ([\d.:A-Fa-f]+) (\d{1,5}) (\d{1,5})$/.exec(line) ?? []
  const family = Number(version)
  if (isIP(source) !== family || isIP(target) !== family) return 'invalid'
  if (ports.some((port) => Number(port) > 65_535)) return 'invalid'
  const { address } = new SocketAddress({ address: source, family: family === 4 ? 'ipv4' : 'ipv6' })
  return { address }
}

/** Of the first 16 bytes; or what is wrong with them. `line`: it is of version 1. */
export function proxyHeadOf(head: Buffer): ProxyHead | 'line' | 'missing' | 'invalid' {
  if (head.toString('latin1', 0, 6) === 'PROXY ') return 'line'
  if (!head.subarray(0, signature.length).equals(signature)) return 'missing'
  const [versionAndCommand, familyAndTransport] = [head[12]!, head[13]!]
  const command = versionAndCommand & 0xf
  const restBytes = head.readUInt16BE(14)
  if (versionAndCommand >> 4 !== 2 || command > 1 || restBytes > restBytesMax) return 'invalid'
  if (command === 0) return { isLocal: true, family: null, restBytes }
  const family = familyOf(familyAndTransport)
  if (family === 'invalid') return 'invalid'
  if (family !== null && restBytes < 2 * addressBytesOf[family] + 4) return 'invalid'
  return { isLocal: false, family, restBytes }
}

/** Null where the balancer does not know the client, or the client is not on a network. */
function familyOf(familyAndTransport: number): 'ipv4' | 'ipv6' | 'invalid' | null {
  switch (familyAndTransport) {
    case 0x11:
      return 'ipv4'
    case 0x21:
      return 'ipv6'
    case 0x00:
    case 0x31:
      return null
    default:
      return 'invalid'
  }
}

/** The address of the client; null where the header names none. */
export function clientAddressOf({ family }: ProxyHead, rest: Buffer): string | null {
  if (family === null) return null
  const source = rest.subarray(0, addressBytesOf[family])
  if (family === 'ipv4') return source.join('.')
  const groups = Array.from({ length: 8 }, (_, index) => source.readUInt16BE(index * 2).toString(16))
  return new SocketAddress({ address: groups.join(':'), family }).address
}
