// partial-packets.ts: attackers that begin packets and do not end them, before and after CONNECT.

import type { Socket } from 'node:net'
import type { Attack, AttackKit, OpenOptions } from './attack-kit.ts'

const mib = 1024 * 1024

/** Fixed header of a packet with this remaining length. */
function headOf(type: number, length: number): Buffer {
  const bytes = [type]
  let left = length
  do {
    const digit = left & 0x7f
    left >>= 7
    bytes.push(left > 0 ? digit | 0x80 : digit)
  } while (left > 0)
  return Buffer.from(bytes)
}

/** A PUBLISH of `length` bytes behind the fixed header, without its last byte. */
function partialPublish(length: number, version: 4 | 5): Buffer {
  const topic = Buffer.from('telemetry/v1/truck-8')
  const start = Buffer.concat([
    headOf(0x32, length),
    Buffer.from([0, topic.length]),
    topic,
    Buffer.from(version === 5 ? [0, 1, 0] : [0, 1]),
  ])
  const rest = Buffer.alloc(length - topic.length - version - 1, 0x78)
  return Buffer.concat([start, rest])
}

/** A CONNECT of `length` bytes behind the fixed header, without its last byte: a long password is missing. */
function partialConnect(length: number, version: 4 | 5): Buffer {
  const id = Buffer.from('partial')
  const user = Buffer.from('fleet')
  const head = Buffer.concat([
    Buffer.from([0, 4]),
    Buffer.from('MQTT'),
    Buffer.from([version, 0xc2, 0, 0, ...(version === 5 ? [0] : []), 0, id.length]),
    id,
    Buffer.from([0, user.length]),
    user,
  ])
  const passwordBytes = length - head.length - 2
  const password = Buffer.alloc(passwordBytes - 1, 0x78)
  return Buffer.concat([
    headOf(0x10, length),
    head,
    Buffer.from([passwordBytes >> 8, passwordBytes & 0xff]),
    password,
  ])
}

async function hold(kit: AttackKit, socket: Socket, everyMs: number, byte: () => Buffer): Promise<void> {
  while (!kit.over && !socket.destroyed) {
    await kit.pause(everyMs)
    if (!(await kit.write(socket, byte()))) return
  }
}

async function stay(kit: AttackKit, socket: Socket): Promise<void> {
  while (!kit.over && !socket.destroyed) await kit.pause(50)
}

const from = (spread: boolean, index: number): OpenOptions => ({ stranger: spread ? index + 1 : 0 })

/** max_partial_bytes is 67 MB of it; with TLS each connection has its buffers besides. */
const growthMbMax = { plain: 130, tls: 210 }
/** What OpenSSL frees stays with malloc, between what is in use, and serves the next connections. */
const keptMbMax = { plain: 50, tls: 120 }

function beforeConnect(name: string, spread: boolean, count: number): Attack {
  return {
    name,
    growthMbMax,
    keptMbMax,
    does: `opens ${count} connections ${spread ? 'of as many addresses' : 'of one address'} and sends a CONNECT of 64 KiB less a byte on each`,
    run: (kit) =>
      kit.crowd(count, async (index) => {
        const socket = await kit.open(from(spread, index))
        if (socket === null) return kit.pause(200)
        if (await kit.write(socket, partialConnect(64 * 1024, kit.target.version))) await stay(kit, socket)
        socket.destroy()
        return kit.pause(200)
      }),
  }
}

function afterConnect(name: string, spread: boolean, length: number): Attack {
  return {
    name,
    growthMbMax,
    keptMbMax,
    does: `opens 600 connections ${spread ? 'of as many addresses' : 'of one address'} and sends ${length / mib} MiB less a byte on each`,
    run: (kit) =>
      kit.crowd(600, async (index, turn) => {
        const socket = await kit.join(`partial-${index}-${turn}`, from(spread, index))
        if (socket === null) return kit.pause(200)
        if (await kit.write(socket, partialPublish(length, kit.target.version))) await stay(kit, socket)
        socket.destroy()
        return kit.pause(200)
      }),
  }
}

export const partialPackets: readonly Attack[] = [
  beforeConnect('partial-connect', false, 2000),
  beforeConnect('partial-connect-spread', true, 4000),
  afterConnect('partial-publish', false, mib),
  afterConnect('partial-publish-spread', true, mib),
  {
    name: 'partial-trickle',
    growthMbMax,
    keptMbMax,
    does: 'opens 600 connections of as many addresses, sends half a packet of 1 MiB on each, then a byte a second',
    run: (kit) =>
      kit.crowd(600, async (index, turn) => {
        const socket = await kit.join(`trickle-${index}-${turn}`, from(true, index))
        if (socket === null) return kit.pause(200)
        if (await kit.write(socket, partialPublish(mib, kit.target.version).subarray(0, mib / 2)))
          await hold(kit, socket, 1000, () => Buffer.from('x'))
        socket.destroy()
        return kit.pause(200)
      }),
  },
  {
    name: 'slow-writers',
    does: 'opens 1,000 connections and sends CONNECT and PUBLISH byte by byte, 10 bytes a second',
    run: (kit) =>
      kit.crowd(1000, async (index) => {
        const socket = await kit.open(from(true, index))
        if (socket === null) return kit.pause(200)
        const { version } = kit.target
        const bytes = Buffer.concat([
          partialConnect(200, version),
          Buffer.from('x'),
          partialPublish(2000, version),
        ])
        let at = 0
        await hold(kit, socket, 100, () => bytes.subarray(at, (at += 1)))
        socket.destroy()
        return undefined
      }),
  },
]
