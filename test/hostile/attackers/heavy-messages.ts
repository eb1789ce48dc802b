// heavy-messages.ts: attackers whose messages are few and take long to read: small ones that unpack to many times
// their size, and large ones of values that cost more than others.

import { gzipSync } from 'node:zlib'
import { repeated, type Attack } from './attack-kit.ts'

const connections = 40
const everyMs = 100

/** Ten messages a second on each connection, whether they are read or not. */
function heavy(name: string, does: string, make: () => { topic: string; payload: string | Buffer }): Attack {
  return {
    name: `heavy-${name}`,
    does: `${does}, ten times a second on ${connections} connections`,
    run: (kit) => {
      const { topic, payload } = make()
      return kit.crowd(connections, async (index, turn) => {
        const socket = await kit.join(`heavy-${index}-${turn}`)
        if (socket === null) return kit.pause(20)
        for (let id = 1; id < 65_535; id += 1) {
          if (!(await kit.write(socket, kit.publish({ topic, payload, qos: 1, messageId: id })))) break
          await kit.pause(everyMs)
        }
        return undefined
      })
    },
  }
}

const listed = 'telemetry/v1/truck-7'
const listOf = (value: string, bytes: number) => `{"a":[${`${value},`.repeat(bytes / (value.length + 1))}0]}`

export const heavyMessages: readonly Attack[] = [
  // 4 million fields, which the gateway does not know.
  heavy('unpack', 'sends 8 KB that unpack to 8 MiB', () => ({
    topic: 'kura/truck-7',
    payload: gzipSync(repeated(Buffer.from([0x30, 1]), 4 * 1024 ** 2 - 1000)),
  })),
  heavy('bomb', 'sends 256 KiB in 300 bytes', () => ({
    topic: 'kura/truck-7',
    payload: gzipSync(repeated(Buffer.from([0x30, 1]), 128 * 1024 - 100)),
  })),
  heavy('nan', 'sends 80 KB of NaN', () => ({ topic: listed, payload: listOf('NaN', 80_000) })),
  heavy('keys', 'sends 80,000 keys', () => ({
    topic: listed,
    payload: `{${Array.from({ length: 80_000 }, (_, n) => `"k${n}":1`).join(',')}}`,
  })),
  heavy('quotes', 'sends 80 KB of quotes that do not end, behind a large number', () => ({
    topic: listed,
    payload: `[12345678901234567890,"${'\\"'.repeat(40_000)}`,
  })),
]
