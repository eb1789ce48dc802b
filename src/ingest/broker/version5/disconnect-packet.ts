// disconnect-packet.ts: the bytes of DISCONNECT (MQTT 5, 3.14), never more than the client takes
// [MQTT-3.14.2-3]. Null where not even the shortest fits. The reason string is a stable key
// (client-faults.ts), left out where the client wants none or has no room for it.

import type { ConnectRequest } from './connect-properties.ts'

const head = 0xe0
const reasonStringId = 0x1f
const shortestBytes = 3

export function disconnectPacket(
  code: number,
  reason: string,
  { wantsReasons, packetBytesMax }: Pick<ConnectRequest, 'wantsReasons' | 'packetBytesMax'>,
): Buffer | null {
  const text = Buffer.from(reason)
  const propertiesLength = text.length + 3
  // All lengths are below 128, because the keys are short.
  const start = [head, propertiesLength + 2, code, propertiesLength, reasonStringId, 0, text.length]
  if (wantsReasons && start.length + text.length <= packetBytesMax)
    return Buffer.concat([Buffer.from(start), text])
  return shortestBytes <= packetBytesMax ? Buffer.from([head, 1, code]) : null
}
