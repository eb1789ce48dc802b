// packet-taking.ts: which code takes the packets of a connection, by the version of MQTT.
//
//   3.1, 3.1.1   publish-fast-path.ts, and aedes what that leaves
//   5            version5/publish-packets.ts, and the broker what that leaves: aedes sees none of them

import type { ReceivedMessage } from '../../../types.ts'
import { takePublishes5 } from '../../version5/publish-packets.ts'
import { takePublishes, type PacketTaker } from './publish-fast-path.ts'
import type { ReaderOwner } from './types.ts'

/** Takes packets from the start of `portion`; returns where it stopped. */
export function takeMessages(
  portion: Buffer,
  { message, owner }: { message: ReceivedMessage; owner: ReaderOwner },
  taker: PacketTaker,
  packetBytesMax: number,
): number {
  const { version5 } = owner
  if (version5 === null) return takePublishes(portion, packetBytesMax, message, taker)
  const end = takePublishes5(portion, version5, message, taker)
  if (version5.fault !== null) owner.drop(version5.fault.reason, version5.fault.detail, version5.fault.code)
  return end
}

/**
 * Takes the packets of MQTT 5 that `takeFast` has left at `start`, and those behind. Returns where it
 * stopped.
 */
export function takeOthers(
  portion: Buffer,
  start: number,
  owner: ReaderOwner,
  takeFast: (rest: Buffer) => number,
): number {
  if (owner.version5 === null) return start
  let at = start
  while (at < portion.length && !owner.closed) {
    at = owner.takePacket(portion, at)
    if (!owner.closed) at += takeFast(portion.subarray(at))
  }
  return at
}
