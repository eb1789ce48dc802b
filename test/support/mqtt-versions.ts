// mqtt-versions.ts: the packets and devices of MQTT 3.1.1 and MQTT 5 under the same names, for tests of both.
// MQTT 3.1.1 leaves out the properties that it is told.

import {
  connectPacket3,
  disconnectPacket3,
  publishPacket3,
  readServerPacket3,
  subscribePacket3,
  unsubscribePacket3,
} from './mqtt3-packets.ts'
import {
  connectPacket,
  disconnectPacket,
  publishPacket,
  subscribePacket,
  unsubscribePacket,
  type ConnectFields,
  type PublishFields,
} from './mqtt5-packets.ts'
import { readServerPacket, type ServerPacket } from './mqtt5-reader.ts'
import { openRawDevice, type DeviceOptions, type PacketRead, type RawDevice } from './raw-device.ts'

export type Version = 3 | 5

type Filter = string | readonly number[]

export type VersionPackets = {
  connect(fields?: ConnectFields): Buffer
  publish(fields?: PublishFields): Buffer
  subscribe(messageId: number, filters: readonly (readonly [filter: Filter, options: number])[]): Buffer
  unsubscribe(messageId: number, filters: readonly Filter[]): Buffer
  disconnect: Buffer
  read: PacketRead
}

export const packetsOf: Readonly<Record<Version, VersionPackets>> = {
  3: {
    connect: connectPacket3,
    publish: publishPacket3,
    subscribe: subscribePacket3,
    unsubscribe: unsubscribePacket3,
    disconnect: disconnectPacket3,
    read: readServerPacket3,
  },
  5: {
    connect: connectPacket,
    publish: publishPacket,
    subscribe: subscribePacket,
    unsubscribe: unsubscribePacket,
    disconnect: disconnectPacket(),
    read: readServerPacket,
  },
}

export type VersionDevice = RawDevice & {
  /** Sends CONNECT and resolves with the CONNACK; rejects when the connection ends before. */
  connect(fields?: ConnectFields): Promise<ServerPacket>
}

/** What comes is read strictly: mqtt3-packets.ts, mqtt5-reader.ts. */
export async function openVersion(version: Version, options: DeviceOptions): Promise<VersionDevice> {
  const device = await openRawDevice(options, packetsOf[version].read)
  function connect(fields?: ConnectFields): Promise<ServerPacket> {
    device.send(packetsOf[version].connect(fields))
    return device.next('connack')
  }
  // Not a copy: its fields change.
  return Object.assign(device, { connect })
}
