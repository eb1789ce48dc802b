// proxy-connection.ts: reads the PROXY protocol header at the begin of a connection from a balancer. What
// follows the header stays in the socket, for TLS or MQTT. A header ends the connection when it is too large,
// not valid, or not complete in time.

import { BlockList, isIPv6, type Socket } from 'node:net'
import type { Clock } from '../../../std/clock.ts'
import { plainAddress } from '../connection-limits/connection-limits.ts'
import {
  clientAddressIn,
  clientAddressOf,
  headBytes,
  lineBytesMax,
  proxyHeadOf,
  type ProxyHead,
} from './proxy-header.ts'

export type Subnet = { address: string; prefix: number }

/** Whether an address is in one of the subnets. */
export function createTrust(subnets: readonly Subnet[]): (address: string | null) => boolean {
  const list = new BlockList()
  for (const { address, prefix } of subnets) list.addSubnet(address, prefix, familyOf(address))
  return (address) => address !== null && list.check(address, familyOf(address))
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4'
}

export type ProxyResult =
  /** Null: a check of the balancer, or a client that it does not know. */
  { kind: 'client'; address: string | null } | { kind: 'missing' } | { kind: 'invalid' }

/** Calls `done` once; not at all where the connection ends before. */
export function readProxyHeader(
  { socket, clock }: { socket: Socket; clock: Clock },
  timeoutMs: number,
  done: (result: ProxyResult) => void,
): void {
  let head: ProxyHead | null = null
  /** Of version 1, as far as it came. */
  let line: Buffer | null = null
  const cancelTimeout = clock.after(timeoutMs, () => finish({ kind: 'missing' }))
  socket.on('readable', readOn)
  socket.once('close', stop)
  readOn()

  function readOn(): void {
    if (line !== null) {
      readLine(line)
      return
    }
    if (head === null) {
      const bytes = socket.read(headBytes) as Buffer | null
      if (bytes === null) return
      const found = bytes.length < headBytes ? 'missing' : proxyHeadOf(bytes)
      if (found === 'line') {
        readLine(bytes)
        return
      }
      if (typeof found === 'string') {
        finish({ kind: found })
        return
      }
      head = found
    }
    const rest = head.restBytes === 0 ? Buffer.alloc(0) : (socket.read(head.restBytes) as Buffer | null)
    if (rest === null) return
    if (rest.length < head.restBytes) finish({ kind: 'invalid' })
    else finish({ kind: 'client', address: plainAddress(clientAddressOf(head, rest)) })
  }

  function readLine(before: Buffer): void {
    const length = Math.min(lineBytesMax - before.length, socket.readableLength)
    const more = length === 0 ? null : (socket.read(length) as Buffer | null)
    line = more === null ? before : Buffer.concat([before, more])
    const end = line.indexOf('\r\n')
    if (end < 0) {
      if (line.length >= lineBytesMax) finish({ kind: 'invalid' })
      return
    }
    const found = clientAddressIn(line.toString('latin1', 0, end))
    if (end + 2 < line.length) socket.unshift(line.subarray(end + 2))
    if (found === 'invalid') finish({ kind: 'invalid' })
    else finish({ kind: 'client', address: plainAddress(found.address) })
  }

  function finish(result: ProxyResult): void {
    stop()
    // Later, so that the stream has seen that its listener is gone: it announces the rest to the next one.
    setImmediate(() => {
      if (!socket.destroyed) done(result)
    })
  }

  function stop(): void {
    cancelTimeout()
    socket.off('readable', readOn)
    socket.off('close', stop)
  }
}
