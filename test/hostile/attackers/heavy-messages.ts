// heavy-messages.ts: attackers whose messages are few and take long to read: small ones that unpack to many times
// their size, and large ones of values that cost more than others.

import { gzipSync } from 'node:zlib'
import { generate } from 'mqtt-packet'
import { connectBytes } from '../../support/mqtt-device.ts'
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

/** The same to the broker of a bridge, which hands all of them on. */
function heavyBehindBridge(
  name: string,
  does: string,
  make: () => { topic: string; payload: string | Buffer },
): Attack {
  return {
    name: `bridge-${name}`,
    does: `${does}, ten times a second on ${connections} connections, to a broker behind a bridge`,
    run: (kit) => {
      const packet = generate({ cmd: 'publish', ...make(), qos: 1, messageId: 1, dup: false, retain: false })
      return kit.crowd(connections, async (index, turn) => {
        const socket = await kit.open({ port: kit.target.sitePort, raw: true })
        if (socket === null) return kit.pause(20)
        if (!(await kit.writeBytes(socket, connectBytes(`site-${index}-${turn}`)))) return undefined
        while (await kit.writeBytes(socket, packet)) await kit.pause(everyMs)
        return undefined
      })
    },
  }
}

const listed = 'telemetry/v1/truck-7'
const listOf = (value: string, bytes: number) => `{"a":[${`${value},`.repeat(bytes / (value.length + 1))}0]}`

const keysOf = (count: number) => ({
  topic: listed,
  payload: `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join(',')}}`,
})
const bomb = () => ({
  topic: 'kura/truck-7',
  payload: gzipSync(repeated(Buffer.from([0x30, 1]), 128 * 1024 - 100)),
})

export const heavyMessages: readonly Attack[] = [
  // 4 million fields, which the gateway does not know.
  heavy('unpack', 'sends 8 KB that unpack to 8 MiB', () => ({
    topic: 'kura/truck-7',
    payload: gzipSync(repeated(Buffer.from([0x30, 1]), 4 * 1024 ** 2 - 1000)),
  })),
  heavy('bomb', 'sends 256 KiB in 300 bytes', bomb),
  heavy('nan', 'sends 80 KB of NaN', () => ({ topic: listed, payload: listOf('NaN', 80_000) })),
  heavy('keys', 'sends 80,000 keys', () => keysOf(80_000)),
  heavy('quotes', 'sends 80 KB of quotes that do not end, behind a large number', () => ({
    topic: listed,
    payload: `[12345678901234567890,"${'\\"'.repeat(40_000)}`,
  })),
  heavyBehindBridge('bomb', 'sends 256 KiB in 300 bytes', bomb),
  heavyBehindBridge('keys', 'sends 10,000 keys', () => keysOf(10_000)),
]
