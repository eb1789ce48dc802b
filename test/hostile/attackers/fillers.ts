// fillers.ts: attackers that fill what the gateway keeps: quarantine, dead letters, deferred messages, open parts,
// stored sessions, and everything that counts by name.

import type { Socket } from 'node:net'
import type { PublishOptions } from '../../support/mqtt-device.ts'
import type { Attack, AttackKit } from './attack-kit.ts'

const connections = 4
const perWrite = 20

type Message = Pick<PublishOptions, 'topic' | 'payload'>

/** Publishes with QoS 1 without waiting for acknowledgements; what the gateway does not read stays in the socket. */
function fills(name: string, does: string, make: (kit: AttackKit, serial: number) => Message): Attack {
  return {
    name,
    does,
    run: (kit) => {
      let serial = 0
      return kit.crowd(connections, async (index, turn) => {
        const socket = await kit.join(`filler-${index}-${turn}`)
        if (socket === null) return kit.pause(20)
        await Promise.race([fill(socket), kit.pause(2000)])
        // Another connection goes on where this one is held.
        socket.destroy()
        return undefined
      })

      async function fill(socket: Socket): Promise<void> {
        let id = 0
        const next = () => {
          id = (id % 65_535) + 1
          serial += 1
          return kit.publish({ ...make(kit, serial), qos: 1, messageId: id })
        }
        while (await kit.write(socket, Buffer.concat(Array.from({ length: perWrite }, next))))
          await new Promise(setImmediate)
      }
    },
  }
}

const position = (more: object) => JSON.stringify({ ts: Date.now(), gps: { lat: 1, lon: 2 }, ...more })

export const fillers: readonly Attack[] = [
  fills('quarantine', 'publishes 2 KB each under invented names', (_kit, serial) => ({
    topic: `telemetry/v1/invented-${serial}`,
    payload: position({ padding: 'x'.repeat(2000) }),
  })),
  fills('quarantine-one-name', 'publishes 2 KB each under one invented name', (_kit, serial) => ({
    topic: 'telemetry/v1/invented',
    payload: position({ serial, padding: 'x'.repeat(2000) }),
  })),
  fills('names', 'publishes small messages under names of 200 characters', (_kit, serial) => ({
    topic: `telemetry/v1/${'n'.repeat(190)}${serial}`,
    payload: position({}),
  })),
  fills('dead-letters', 'publishes what cannot be mapped, under listed names', (_kit, serial) => ({
    topic: `telemetry/v1/truck-${50 + (serial % 50)}`,
    payload: `not JSON ${serial} ${'x'.repeat(2000)}`,
  })),
  fills('no-source', 'publishes to topics that no source takes', (_kit, serial) => ({
    topic: `elsewhere/${serial}`,
    payload: 'x'.repeat(2000),
  })),
  fills(
    'open-parts',
    'publishes parts of messages that never become whole, under invented names',
    (_kit, serial) => ({
      topic: `tanks/invented-${serial}/level`,
      payload: JSON.stringify({ value: serial, padding: 'x'.repeat(1000) }),
    }),
  ),
  fills(
    'open-parts-listed',
    'publishes parts that never become whole, under listed names',
    (_kit, serial) => ({
      topic: `tanks/tank-${50 + (serial % 50)}/other-${serial}`,
      payload: JSON.stringify({ value: serial, padding: 'x'.repeat(1000) }),
    }),
  ),
  fills('expressions', 'publishes messages whose expression needs too many steps', (_kit, serial) => ({
    topic: `calculated/sum-${50 + (serial % 50)}`,
    payload: JSON.stringify({
      ts: Date.now(),
      lat: 1,
      serial,
      list: Array.from({ length: 500 }, (_, n) => n),
    }),
  })),
  {
    name: 'sessions',
    does: 'opens a stored session under a new client id with each connection',
    run: (kit) =>
      kit.crowd(16, async (index, turn) => {
        const socket = await kit.join(`session-${index}-${turn}-${'x'.repeat(200)}`, {}, { clean: false })
        if (socket === null) return kit.pause(20)
        await kit.write(socket, kit.publish({ topic: 'telemetry/v1/truck-9', payload: position({}), qos: 2 }))
        socket.destroy()
        return undefined
      }),
  },
  {
    name: 'wills',
    does: 'connects with a will for a listed device and drops the connection',
    run: (kit) =>
      kit.crowd(16, async (index, turn) => {
        const will = {
          topic: `telemetry/v1/truck-${index}`,
          payload: Buffer.from(position({ turn })),
          qos: 1 as const,
        }
        const socket = await kit.join(`will-${index}-${turn}`, {}, { will })
        if (socket === null) return kit.pause(20)
        socket.destroy()
        return undefined
      }),
  },
]
