// websocket-attacks.ts: attackers of the request for a WebSocket and of its frames.

import type { Socket } from 'node:net'
import { upgradeRequest } from '../../support/websocket-client.ts'
import { repeated, type Attack, type AttackKit } from './attack-kit.ts'
import { maskedFrame } from './websocket-frames.ts'

const payload = JSON.stringify({ ts: Date.now(), gps: { lat: 1, lon: 2 } })
const [continuation, textOpcode, binary, pingOpcode, closeOpcode] = [0, 1, 2, 9, 8]
const kib = 1024

async function stay(kit: AttackKit, socket: Socket): Promise<void> {
  while (!kit.over && !socket.destroyed) await kit.pause(250)
}

/** Connections without a request, which `work` has until they end. */
function requests(
  name: string,
  does: string,
  count: number,
  work: (kit: AttackKit, socket: Socket, serial: number) => Promise<unknown>,
): Attack {
  return {
    name,
    does,
    needs: 'websocket',
    run: (kit) => {
      let serial = 0
      return kit.crowd(count, async (index) => {
        const socket = await kit.open({ stranger: count > 100 ? index + 1 : 0, upgrades: false })
        if (socket === null) return kit.pause(count > 100 ? 200 : 20)
        await work(kit, socket, (serial += 1))
        socket.destroy()
        return kit.pause(count > 100 ? 200 : 1)
      })
    },
  }
}

/** Writes what `make` makes on a WebSocket with CONNECT, until it ends. */
function frames(
  name: string,
  does: string,
  make: (kit: AttackKit, turn: number) => Buffer,
  { reads = true }: { reads?: boolean } = {},
): Attack {
  return {
    name,
    does,
    needs: 'websocket',
    run: (kit) =>
      kit.crowd(8, async (index, turn) => {
        const socket = await kit.join(`frames-${index}-${turn}`, { reads })
        if (socket === null) return kit.pause(20)
        for (let part = 0; await kit.writeBytes(socket, make(kit, part)); part += 1)
          await new Promise(setImmediate)
        socket.destroy()
        return undefined
      }),
  }
}

const publish = (kit: AttackKit) => kit.publish({ topic: 'telemetry/v1/truck-7', payload, qos: 0 })

const refused = [
  { path: '/elsewhere' },
  { headers: { 'Sec-WebSocket-Protocol': 'chat' } },
  { headers: { Origin: 'https://attacker.example' } },
  { headers: { 'Sec-WebSocket-Version': '7' } },
  { headers: { 'Sec-WebSocket-Key': 'x' } },
  { headers: { Upgrade: null } },
  { method: 'POST' },
] as const

const unmasked = (bytes: Buffer) => Buffer.concat([Buffer.from([0x80 | binary, bytes.length]), bytes])

/** Each breaks a rule of RFC 6455. */
const faults: readonly ((kit: AttackKit) => Buffer)[] = [
  () => unmasked(Buffer.from([0xc0, 0])),
  ({ random }) => maskedFrame(Buffer.from('text'), random, { opcode: textOpcode }),
  ({ random }) => maskedFrame(Buffer.from([0xc0, 0]), random, { reserved: 0x40 }),
  ({ random }) => maskedFrame(Buffer.from([0xc0, 0]), random, { opcode: continuation }),
  ({ random }) => maskedFrame(Buffer.alloc(2), random, { opcode: pingOpcode, fin: false }),
  ({ random }) => maskedFrame(Buffer.alloc(200), random, { opcode: pingOpcode }),
  ({ random }) => maskedFrame(Buffer.alloc(0), random, { announced: 2 ** 63 }),
  ({ random }) => maskedFrame(Buffer.from([0xc0, 0]), random, { opcode: 5 }),
]

export const websocketAttacks: readonly Attack[] = [
  requests(
    'upgrades-unfinished',
    'opens 3,000 connections of as many addresses and sends a request without its end, a line a second',
    3000,
    async (kit, socket) => {
      await kit.writeBytes(socket, upgradeRequest().subarray(0, -2))
      for (let line = 0; !kit.over && !socket.destroyed; line += 1) {
        await kit.pause(1000)
        if (!(await kit.writeBytes(socket, Buffer.from(`X-${line}: x\r\n`)))) return
      }
    },
  ),
  requests('upgrades-large', 'sends requests with 256 KiB of headers', 16, async (kit, socket) => {
    const lines = repeated(Buffer.from(`X-Header: ${'x'.repeat(1000)}\r\n`), 256)
    await kit.writeBytes(socket, Buffer.concat([upgradeRequest().subarray(0, -2), lines]))
    await Promise.race([stay(kit, socket), kit.pause(1000)])
  }),
  requests('upgrades-refused', 'sends requests that are refused', 16, async (kit, socket, serial) => {
    await kit.writeBytes(socket, upgradeRequest(refused[serial % refused.length]))
    await Promise.race([stay(kit, socket), kit.pause(1000)])
  }),
  requests(
    'websockets-idle',
    'opens 3,000 WebSockets of as many addresses and sends half a frame',
    3000,
    async (kit, socket) => {
      const half = maskedFrame(Buffer.alloc(100), kit.random).subarray(0, 7)
      await kit.writeBytes(socket, Buffer.concat([upgradeRequest(), half]))
      await stay(kit, socket)
    },
  ),
  requests('deflate', 'asks for compression and sends compressed frames', 16, async (kit, socket) => {
    const headers = { 'Sec-WebSocket-Extensions': 'permessage-deflate; client_max_window_bits' }
    const compressed = maskedFrame(Buffer.from([0x62, 0x60, 0, 0]), kit.random, { reserved: 0x40 })
    await kit.writeBytes(socket, Buffer.concat([upgradeRequest({ headers }), compressed]))
    await Promise.race([stay(kit, socket), kit.pause(1000)])
  }),
  frames('frames-of-one-byte', 'publishes with one byte in each frame', (kit) =>
    Buffer.concat([...publish(kit)].map((byte) => maskedFrame(Buffer.from([byte]), kit.random))),
  ),
  frames('frames-fragmented', 'publishes in a message of WebSocket that never ends', (kit, turn) =>
    maskedFrame(publish(kit), kit.random, { opcode: turn === 0 ? binary : continuation, fin: false }),
  ),
  frames('frames-endless', 'publishes in a frame that announces 2^62 bytes', (kit, turn) =>
    turn === 0
      ? Buffer.concat([
          maskedFrame(Buffer.alloc(0), kit.random, { announced: 2 ** 62 }).subarray(0, -4),
          // A mask of zeros: the bytes behind it are as they are.
          Buffer.alloc(4),
        ])
      : repeated(publish(kit), 200),
  ),
  ...[true, false].map((reads) =>
    frames(
      `frames-pings-${reads ? 'read' : 'unread'}`,
      `floods ping frames of 125 bytes and ${reads ? 'reads the answers' : 'does not read'}`,
      ({ random }) => repeated(maskedFrame(Buffer.alloc(125), random, { opcode: pingOpcode }), 500),
      { reads },
    ),
  ),
  frames('frames-empty', 'floods frames without payload', ({ random }) =>
    repeated(maskedFrame(Buffer.alloc(0), random), 10 * kib),
  ),
  frames('frames-faulty', 'sends frames that break the protocol', (kit) => kit.random.pick(faults)(kit)),
  {
    name: 'closes-unanswered',
    does: 'breaks the protocol on 500 connections and neither reads nor answers the close frame',
    needs: 'websocket',
    run: (kit) =>
      kit.crowd(500, async (index, turn) => {
        const from = { stranger: index + 1, reads: false }
        const socket = await kit.join(`unanswered-${index}-${turn}`, from)
        if (socket === null) return kit.pause(200)
        const fault = maskedFrame(Buffer.from('x'), kit.random, { opcode: textOpcode })
        await kit.writeBytes(socket, fault)
        await Promise.race([stay(kit, socket), kit.pause(5000)])
        socket.destroy()
        return kit.pause(200)
      }),
  },
  {
    name: 'closes',
    does: 'closes its WebSocket with a close frame as soon as it is connected, and writes behind it',
    needs: 'websocket',
    run: (kit) =>
      kit.crowd(16, async (index, turn) => {
        const socket = await kit.join(`closes-${index}-${turn}`)
        if (socket === null) return kit.pause(20)
        const close = maskedFrame(Buffer.from([3, 0xe8]), kit.random, { opcode: closeOpcode })
        await kit.writeBytes(socket, Buffer.concat([close, maskedFrame(publish(kit), kit.random)]))
        await Promise.race([stay(kit, socket), kit.pause(50)])
        socket.destroy()
        return undefined
      }),
  },
]
