// packet-rows.ts: packets of MQTT as rows of YAML, by their fields or by their bytes.
//
//   { publish: { topic: t/+, qos: 2 } }   of the version that the test has; properties are bytes
//   '62 0001 00 (1f "ok")'                the first byte and the body: the remaining length is put between them
//   { bytes: 'c0 8000' }                  as it is
//
// Bytes are hex. A text in quotes has its length before it, what is in parentheses is a section of properties.

import type { VersionPackets } from './mqtt-versions.ts'
import { packetOf, propertiesOf, text, type ConnectFields, type PublishFields } from './mqtt5-packets.ts'

type Filter = string | readonly number[]

/** With `head` the first byte is another one. */
type FieldRow = { head?: number } & Partial<{
  bytes: string
  connect: object
  publish: object
  subscribe: [messageId: number, filters: [filter: Filter, options: number][]]
  unsubscribe: [messageId: number, filters: Filter[]]
}>

export type PacketRow = string | FieldRow

/** The bytes of a text such as `1f "ok"`. */
export function bytesFrom(row: string): Buffer {
  const open: Buffer[][] = [[]]
  for (const [token] of row.matchAll(/"(?:[^"\\]|\\.)*"|[()]|[0-9a-f]+/g)) {
    if (token === '(') open.push([])
    else if (token === ')') {
      const section = propertiesOf(...open.pop()!)
      open.at(-1)!.push(section)
    } else open.at(-1)!.push(token.startsWith('"') ? text(JSON.parse(token)) : Buffer.from(token, 'hex'))
  }
  return Buffer.concat(open[0]!)
}

/** Fields with their properties, and what stands in the place of fields, as bytes. */
export function fieldsFrom(row: object): ConnectFields & PublishFields {
  const entries = Object.entries(row).map(([name, value]): [string, unknown] => {
    if (name === 'will') return [name, fieldsFrom(value as object)]
    if (name === 'section') return [name, bytesFrom(String(value))]
    return ['properties', 'rest'].includes(name) ? [name, [bytesFrom(String(value))]] : [name, value]
  })
  return Object.fromEntries(entries)
}

export function packetFrom(row: PacketRow, packets: VersionPackets): Buffer {
  if (typeof row === 'string') {
    const [head = 0, ...body] = bytesFrom(row)
    return packetOf(head, body)
  }
  const packet = Buffer.from(ofFields(row, packets))
  if (row.head !== undefined) packet[0] = row.head
  return packet
}

function ofFields(
  { bytes, connect, publish, subscribe, unsubscribe }: FieldRow,
  packets: VersionPackets,
): Buffer {
  if (bytes !== undefined) return bytesFrom(bytes)
  if (connect !== undefined) return packets.connect(fieldsFrom(connect))
  if (publish !== undefined) return packets.publish(fieldsFrom(publish))
  if (subscribe !== undefined) return packets.subscribe(...subscribe)
  return packets.unsubscribe(...unsubscribe!)
}
