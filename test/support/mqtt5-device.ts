// mqtt5-device.ts: an MQTT 5 device for tests (raw-device.ts). What comes is read strictly (mqtt5-reader.ts).

import { connectPacket, type ConnectFields } from './mqtt5-packets.ts'
import { readServerPacket, type ServerPacket } from './mqtt5-reader.ts'
import { openRawDevice, type DeviceOptions, type RawDevice } from './raw-device.ts'

export type Device5 = RawDevice & {
  /** Sends CONNECT and resolves with the CONNACK; rejects when the connection ends before. */
  connect(fields?: ConnectFields): Promise<ServerPacket>
}

export async function openDevice5(options: DeviceOptions): Promise<Device5> {
  const device = await openRawDevice(options, readServerPacket)
  function connect(fields?: ConnectFields): Promise<ServerPacket> {
    device.send(connectPacket(fields))
    return device.next('connack')
  }
  // Not a copy: its fields change.
  return Object.assign(device, { connect })
}
