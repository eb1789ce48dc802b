// world5.ts: the real gateway with a listener for each transport, and devices of MQTT 5 (statement-world.ts).

import { openDevice5, type Device5 } from '../../support/mqtt5-device.ts'
import type { ConnectFields } from '../../support/mqtt5-packets.ts'
import type { ServerPacket } from '../../support/mqtt5-reader.ts'
import {
  statementWorld,
  type AtEnd,
  type StatementOptions,
  type StatementWorld,
  type Transport,
} from '../../support/statement-world.ts'

export type World5 = StatementWorld & {
  /** A connection before its CONNECT. */
  open(): Promise<Device5>
  /** A connected device and its CONNACK. */
  connected(fields?: ConnectFields): Promise<Device5 & { connack: ServerPacket }>
}

export async function world5(
  transport: Transport,
  options?: StatementOptions,
  atEnd?: AtEnd,
): Promise<World5> {
  const world = await statementWorld(transport, options, atEnd)
  const open = () => world.keep(openDevice5(world.place))
  return {
    ...world,
    open,
    async connected(fields) {
      const device = await open()
      const connack = await device.connect(fields)
      return Object.assign(device, { connack })
    },
  }
}
