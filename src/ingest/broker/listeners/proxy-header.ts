// proxy-header.ts: the header of the PROXY protocol, version 2, by which a balancer names the client of a
// connection (https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt, section 2.2). Pure: knows no
// socket.
//
//   12 bytes   signature
//    1 byte    version (2) and command: 0 LOCAL, the balancer's own check; 1 PROXY
//    1 byte    family (0 unspecified, 1 IPv4, 2 IPv6, 3 UNIX) and transport (1 stream, 2 datagram)
//    2 bytes   length of the rest
//    rest      source address, destination address, source port, destination port, then TLVs
//
// The TLVs (the name of a TLS client among them) are not used. npm has parsers of whole headers; none reads
// from a socket with a bound and leaves the rest to TLS, which is most of the work.

import { SocketAddress } from 'node:net'

export const headBytes = 16
/** The rest. Addresses and ports have at most 216 bytes; balancers add TLVs of some hundred. */
export const restBytesMax = 2048

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const addressBytesOf = { ipv4: 4, ipv6: 16 } as const

export type ProxyHead = { isLocal: boolean; family: 'ipv4' | 'ipv6' | null; restBytes: number }

/** Of the first 16 bytes; or what is wrong with them. */
export function proxyHeadOf(head: Buffer): ProxyHead | 'missing' | 'invalid' {
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
