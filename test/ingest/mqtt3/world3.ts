// world3.ts: the real gateway with a listener for each transport, and devices of MQTT 3.1.1
// (statement-world.ts).

import { connectPacket3, readServerPacket3, type ConnectFields3 } from '../../support/mqtt3-packets.ts'
import type { ServerPacket } from '../../support/mqtt5-reader.ts'
import { openRawDevice, type RawDevice } from '../../support/raw-device.ts'
import {
  statementWorld,
  type AtEnd,
  type StatementOptions,
  type StatementWorld,
  type Transport,
} from '../../support/statement-world.ts'

export type World3 = StatementWorld & {
  /** A connection before its CONNECT. */
  open(): Promise<RawDevice>
  /** A connected device and its CONNACK. */
  connected(fields?: ConnectFields3): Promise<RawDevice & { connack: ServerPacket }>
}

export async function world3(
  transport: Transport,
  options?: StatementOptions,
  atEnd?: AtEnd,
): Promise<World3> {
  const world = await statementWorld(transport, options, atEnd)
  const open = () => world.keep(openRawDevice(world.place, readServerPacket3))
  return {
    ...world,
    open,
    async connected(fields) {
      const device = await open()
      device.send(connectPacket3(fields))
      const connack = await device.next('connack')
      return Object.assign(device, { connack })
    },
  }
}
