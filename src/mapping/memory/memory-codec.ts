// memory-codec.ts: the stored form of what is remembered of a device: JSON.
//
//   { "asset": "TRUCK-7", "values": { "lock": [1767085201000, "no"] } }
//
// Decoding is total: bytes that are no such entry give null. Unknown keys are of a newer version; they are
// ignored.

import { isRecord } from '../path/path-eval.ts'
import type { DeviceMemory, Plain, RememberedValue } from './device-memory.ts'

type Content = Omit<DeviceMemory, 'key'>

export function encodeMemory({ asset, values }: Content): Buffer {
  const plain: [string, readonly [number, Plain]][] = []
  for (const [name, { time, value }] of values) plain.push([name, [time, value]])
  return Buffer.from(JSON.stringify({ asset, values: Object.fromEntries(plain) }))
}

export function decodeMemory(bytes: Buffer): Content | null {
  const found = parsed(bytes)
  if (!isRecord(found) || typeof found['asset'] !== 'string') return null
  const values = new Map<string, RememberedValue>()
  for (const [name, stored] of Object.entries(isRecord(found['values']) ? found['values'] : {})) {
    if (!Array.isArray(stored)) return null
    const [time, value] = stored as unknown[]
    if (typeof time !== 'number' || !isPlain(value)) return null
    values.set(name, { time, value })
  }
  return { asset: found['asset'], values }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
