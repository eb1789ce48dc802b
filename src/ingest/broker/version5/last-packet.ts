// last-packet.ts: what a client of MQTT 5 gets when the gateway closes its connection: a refusing CONNACK
// before it was answered, DISCONNECT after that [MQTT-3.14.0-1]. Null: nothing.

import type { ClientDropReason, DisconnectReason } from '../client-faults.ts'
import { refusingConnack } from '../connack-packet.ts'
import { connackCodeOf, disconnectCodes, dropCodes } from './reason-codes.ts'
import type { Version5 } from './version5.ts'
import type { ConnectRequest } from './connect-properties.ts'

type Addressee = Pick<Version5, 'request' | 'isAnswered'>

type Fault = {
  reason: ClientDropReason
  /** Where another code than that of the reason says it better. */
  code: number | undefined
}

/** `version5`: null before its CONNECT was read; a fault found in it has a code where it is of MQTT 5. */
export function lastPacketOf(version5: Addressee | null, { reason, code }: Fault): Buffer | null {
  const found = code ?? (version5 === null ? null : dropCodes[reason])
  if (version5?.isAnswered === true)
    return found === null ? null : disconnectPacket(found, reason, version5.request)
  const refusal = connackCodeOf(found)
  return refusal === null ? null : refusingConnack(refusal, reason, version5?.request ?? null)
}

/** Its connection ends without a fault of it. */
export function disconnectOf(version5: Addressee | null, reason: DisconnectReason): Buffer | null {
  const code = disconnectCodes[reason]
  if (version5?.isAnswered !== true || code === null) return null
  return disconnectPacket(code, reason, version5.request)
}

// The bytes of DISCONNECT (MQTT 5, 3.14), never more than the client takes
// [MQTT-3.14.2-3]. Null where not even the shortest fits. The reason string is a stable key
// (client-faults.ts), left out where the client wants none or has no room for it.

const head = 0xe0
const reasonStringId = 0x1f
const shortestBytes = 3

function disconnectPacket(
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
